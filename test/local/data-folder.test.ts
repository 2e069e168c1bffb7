import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { claimDataFolder, quietDataFolder } from '../../scripts/serve/data-folder.ts'
import { freePort, startServe } from '../harness/serve-node.ts'

let folder: string
const cleanUps: Array<() => unknown> = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hg-claim-'))
  cleanUps.push(() => rmSync(folder, { recursive: true, force: true }))
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** Handles that keep this process from ending. */
const openPipes = () => process.getActiveResourcesInfo().filter((name) => name === 'PipeWrap').length

describe('a data folder', () => {
  it('is paused until the end, and by one process at a time', async () => {
    const owner = { pause: vi.fn(async () => {}), resume: vi.fn(async () => {}) }
    cleanUps.push(await claimDataFolder(folder, owner))
    const quiet = await quietDataFolder(folder)
    await expect(quietDataFolder(folder)).rejects.toThrow('this folder cannot be paused now')
    expect(owner.resume).not.toHaveBeenCalled()
    await quiet.end()
    await vi.waitFor(() => expect(owner.resume).toHaveBeenCalledOnce())
    expect(owner.pause).toHaveBeenCalledOnce()
  })

  it('whose owner refuses a pause is not resumed, leaves no connection open, and may be asked again', async () => {
    const before = openPipes()
    let reason: string | null = 'it is starting'
    const owner = {
      pause: async () => {
        if (reason !== null) throw new Error(reason)
      },
      resume: vi.fn(async () => {}),
    }
    const release = await claimDataFolder(folder, owner)
    await expect(quietDataFolder(folder)).rejects.toThrow('does not pause: it is starting')
    // One is the server's own.
    await vi.waitFor(() => expect(openPipes()).toBeLessThanOrEqual(before + 1))
    expect(owner.resume).not.toHaveBeenCalled()
    reason = null
    const quiet = await quietDataFolder(folder)
    expect(quiet.hadOwner).toBe(true)
    await quiet.end()
    await release()
  })

  it('in use is refused to the tools before they start', async () => {
    cleanUps.push(await claimDataFolder(folder, null))
    // There is nothing in it that could start.
    const bundle = mkdtempSync(join(tmpdir(), 'hg-bundle-'))
    cleanUps.push(() => rmSync(bundle, { recursive: true, force: true }))
    writeFileSync(join(bundle, 'gateway.js'), '')
    const variables = { DATA_DIR: folder, TOOLS_PORT: String(await freePort()), BUNDLE_DIR: bundle }
    const tools = startServe(variables, ['--tools'])
    expect(await tools.ended()).toBe(1)
    expect(tools.lines()).toMatchObject([
      { event: 'failed', reason: expect.stringContaining('is in use by another process') },
    ])
  })
})
