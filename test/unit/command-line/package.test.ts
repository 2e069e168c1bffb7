import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildHeadgate } from '../../../scripts/build-headgate.ts'
import { ORGANIZATION, startInstallation, TOKEN } from './installation.ts'

const folder = mkdtempSync(join(tmpdir(), 'headgate-package-'))
const project = join(folder, 'project')
const installed = join(project, 'node_modules/headgate')
let installation: Awaited<ReturnType<typeof startInstallation>>

/** Runs npm, which needs nothing of a registry for a package without dependencies. */
const npm = (cwd: string, ...words: string[]) =>
  execFileSync('npm', [...words, '--offline', '--no-audit', '--no-fund'], {
    cwd,
    encoding: 'utf8',
    shell: process.platform === 'win32',
  })

beforeAll(async () => {
  installation = await startInstallation()
  const built = join(folder, 'built')
  await buildHeadgate(built)
  npm(folder, 'pack', './built', '--silent')
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), '{"private":true}')
  const [archive = ''] = readdirSync(folder).filter((name) => name.endsWith('.tgz'))
  npm(project, 'install', join(folder, archive))
}, 120_000)
afterAll(async () => {
  await installation.close()
  rmSync(folder, { recursive: true })
})

async function headgate(words: string[], input = '') {
  const child = spawn(process.execPath, [join(installed, 'headgate.js'), ...words], {
    env: { PATH: process.env.PATH, XDG_CONFIG_HOME: folder, APPDATA: folder },
  })
  child.stdin.end(input)
  const ended = new Promise<number>((resolve) => child.once('exit', (code) => resolve(code ?? -1)))
  const [output, errors, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  return { code, output, errors }
}

describe('the packed program', () => {
  it('brings no dependency, and runs from Node 20 on', () => {
    const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
    expect(manifest).toMatchObject({ name: 'headgate', engines: { node: '>=20' } })
    expect(manifest).not.toHaveProperty('dependencies')
    expect(readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual([
      'headgate',
    ])
    expect(readFileSync(join(installed, 'headgate.js'), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
  })

  it('signs in and works on an installation', async () => {
    const login = ['login', '--url', installation.url, '--token-stdin', '--organization', ORGANIZATION]
    expect(await headgate(['whoami'])).toMatchObject({ code: 1 })
    // The organization is looked up, and there is none of this id.
    expect(await headgate(login, TOKEN)).toMatchObject({ code: 1 })
    expect(await headgate(login.slice(0, 4), TOKEN)).toMatchObject({ code: 0 })
    const listed = await headgate(['organizations', 'list', '--json'])
    expect(JSON.parse(listed.output)).toEqual([{ id: ORGANIZATION, slug: 'acme' }])
  })

  it('ends quietly where the reader of its output leaves', async () => {
    const child = spawn(process.execPath, [join(installed, 'headgate.js'), 'api', 'list', '--json'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child.stdout.destroy()
    expect(await text(child.stderr)).toBe('')
  })

  it('has what only some commands load', async () => {
    writeFileSync(join(folder, 'export.jsonl'), '')
    const verified = await headgate(['audit', 'verify', '--file', join(folder, 'export.jsonl')])
    expect(verified).toMatchObject({ code: 3, output: expect.stringContaining('it has no end') })
    const words = ['agents', 'apply', '--file', '-', '--organization', ORGANIZATION]
    expect((await headgate(words, 'a: [')).errors).toContain('is not valid YAML')
    expect((await headgate(['nothing'])).code).toBe(2)
  })
})
