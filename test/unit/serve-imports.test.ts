import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { describe, expect, it } from 'vitest'
import { configOf } from '../../scripts/node/workerd-config.ts'
import { importsOf, maskSource } from '../../scripts/source-imports.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Every file that a process of a node begins with. */
const ENTRIES = [
  'scripts/serve.ts',
  'scripts/backup.ts',
  'scripts/restore.ts',
  'scripts/node/watchdog.ts',
  ...readdirSync(join(ROOT, 'scripts/serve'))
    .filter((name) => name.endsWith('-process.ts'))
    .map((name) => `scripts/serve/${name}`),
]

/** The files and packages that these files load, types left out. */
function loadedBy(entries: readonly string[]): { files: Set<string>; packages: Set<string> } {
  const files = new Set<string>()
  const packages = new Set<string>()
  const queue = [...entries]
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    if (files.has(path)) continue
    files.add(path)
    const text = readFileSync(join(ROOT, path), 'utf8')
    for (const { specifier, typeOnly } of importsOf(text, maskSource(text))) {
      if (typeOnly || specifier.startsWith('node:')) continue
      if (specifier.startsWith('.')) queue.push(posix.join(posix.dirname(path), specifier))
      else
        packages.add(
          specifier
            .split('/')
            .slice(0, specifier.startsWith('@') ? 2 : 1)
            .join('/'),
        )
    }
  }
  return { files, packages }
}

describe('what a node in production loads', () => {
  const { files, packages } = loadedBy(ENTRIES)

  it('is found by the walk', () => {
    expect(ENTRIES).toContain('scripts/serve/services-process.ts')
    for (const path of ['scripts/node/workerd.ts', 'scripts/node/qstash/server.ts', 'src/env.ts'])
      expect([...files]).toContain(path)
    for (const path of files) expect(existsSync(join(ROOT, path))).toBe(true)
    // The walk would find a stand-in: this command loads them.
    expect([...loadedBy(['scripts/dev.ts']).files]).toContain('scripts/seed.ts')
  })

  it('has no stand-in, seed, scripted provider, clock that can be moved, embedded database, or test', () => {
    const unwanted =
      /^(scripts\/local\/|test\/)|seed|demo-|local-secrets|local-system|adjustable|embedded|scripted/
    expect([...files].filter((path) => unwanted.test(path))).toEqual([])
  })

  it('has packages that an installation without development has', () => {
    const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    expect([...packages].filter((name) => !(name in dependencies))).toEqual([])
    // Of the runtime only the program is used.
    expect(dependencies).toHaveProperty('workerd')
  })
})

describe('the configuration of the runtime', () => {
  const config = configOf(
    {
      bundleDirectory: join(ROOT, 'scripts'),
      bindings: {},
      compatibilityDate: '2026-10-23',
      flags: [],
      scheduled: true,
    },
    { ADMIN_TOKEN: 'secret of the test' },
    '/data/objects',
    { http: 'unix:/data/run/gateway.sock', schedule: 'unix:/data/run/schedule.sock' },
    'unix:/data/run/cache.sock',
  )

  it('has the same keys for ever: another key would leave the stored objects behind', () => {
    expect(
      [...config.matchAll(/className = "(\w+)", uniqueKey = "([\w-]+)"/g)].map(([, ...names]) => names),
    ).toEqual([
      ['Ledger', 'headgate-Ledger'],
      ['ResponseStream', 'headgate-ResponseStream'],
      ['ResponsePool', 'headgate-ResponsePool'],
      ['ResponseSockets', 'headgate-ResponseSockets'],
      ['ConnectionCredentials', 'headgate-ConnectionCredentials'],
    ])
  })

  it('has no value of a variable, and listens for this machine alone', () => {
    expect(config).not.toContain('secret of the test')
    expect(config.match(/address = "[^"]*"/g)).toEqual([
      'address = "unix:/data/run/cache.sock"',
      'address = "unix:/data/run/gateway.sock"',
      'address = "unix:/data/run/schedule.sock"',
    ])
  })
})
