import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { claimPath } from '../../scripts/node/folder-claim.ts'
import { claimContent } from '../../scripts/serve/content-claim.ts'

/** Claims a folder and is killed with its claim. */
const OWNER = `const { claimContent } = await import(process.env.MODULE)
await claimContent(process.env.FOLDER)
console.log('claimed')`

/** A process whose ids say nothing outside, as in a container. */
const CONTAINER = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child=SIGKILL']
const hasContainers = spawnSync('unshare', [...CONTAINER.slice(1), 'true'], { stdio: 'ignore' }).status === 0

let folder: string
const children: ChildProcess[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hg-claims-'))
})
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

/** @param prefix words of a command that starts another one */
async function claimedByOther(prefix: readonly string[] = []): Promise<ChildProcess> {
  const words = [...prefix, process.execPath, '--input-type=module', '--eval', OWNER]
  const child = spawn(words[0] ?? '', words.slice(1), {
    env: {
      PATH: process.env.PATH,
      FOLDER: folder,
      MODULE: join(import.meta.dirname, '../../scripts/serve/content-claim.ts'),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  const { promise, resolve, reject } = Promise.withResolvers<unknown>()
  child.stdout?.once('data', resolve)
  child.once('exit', (code) => reject(new Error(`it ended with ${code}`)))
  await promise
  return child
}

describe('the claim of a folder of content', () => {
  it.skipIf(!hasContainers)('is seen from another container', async () => {
    await claimedByOther(CONTAINER)
    await expect(claimContent(folder)).rejects.toThrow(`${folder} is in use by another process`)
  })

  it('is taken over from a process that was killed', async () => {
    const owner = await claimedByOther()
    await expect(claimContent(folder)).rejects.toThrow('is in use')
    const ended = new Promise((resolve) => owner.once('exit', resolve))
    owner.kill('SIGKILL')
    await ended
    expect(existsSync(join(folder, 'claim.sock'))).toBe(true)
    const release = await claimContent(folder)
    await release()
    expect(existsSync(join(folder, 'claim.sock'))).toBe(false)
  })

  it('is refused where the path is too long for a socket', async () => {
    const long = join(folder, 'x'.repeat(100))
    await expect(claimContent(long)).rejects.toThrow('use a folder with a shorter path')
  })
})

describe('the claim of a local path', () => {
  it('is given back only if it is still the own one', () => {
    const path = join(folder, 'data')
    const release = claimPath(path)
    writeFileSync(`${path}.lock`, '1 2')
    release()
    expect(readFileSync(`${path}.lock`, 'utf8')).toBe('1 2')
    rmSync(`${path}.lock`)
    const again = claimPath(path)
    again()
    expect(existsSync(`${path}.lock`)).toBe(false)
  })
})
