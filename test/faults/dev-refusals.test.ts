import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freePortPair, startDev } from '../harness/dev-command.ts'

let folder: string
const servers: Server[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-dev-'))
})
afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve))
  rmSync(folder, { recursive: true, force: true })
})

async function refusalOf(environment: Record<string, string>, parameters: string[] = []): Promise<string> {
  const run = startDev(folder, environment, { parameters })
  expect(await run.ended()).toBe(1)
  const { stdout, stderr } = run.output()
  expect(stdout).toBe('')
  expect(stderr).toMatch(/^headgate: [^\n]+\n$/)
  // No started process may be left that prevents the next start.
  expect(readdirSync(folder).filter((name) => name.endsWith('.lock') || name === 'worker.json')).toEqual([])
  return stderr.slice('headgate: '.length).trim()
}

async function occupy(port: number): Promise<void> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  servers.push(server)
}

describe('npm run dev refuses', () => {
  it('a port that is none', async () => {
    expect(await refusalOf({ PORT: 'abc' })).toMatch(/^PORT takes a number/)
  })

  it('a port in use, its own or the LLM host’s', async () => {
    const port = await freePortPair()
    await occupy(port)
    expect(await refusalOf({ PORT: String(port) })).toBe(
      `port ${port} is in use; PORT=<number> takes another`,
    )
    if (port > 1) {
      expect(await refusalOf({ PORT: String(port - 1) })).toMatch(
        /^port \d+ is in use; PORT=<number> takes another$/,
      )
    }
  })

  it('a bad variable', async () => {
    const said = await refusalOf({
      PORT: String(await freePortPair()),
      ORGANIZATION_RATE_LIMIT: 'lots',
      KEY_PEPPERS: 'canary-pepper',
      QSTASH_DEV: '1',
    })
    expect(said).toMatch(
      /^Invalid configuration: .*QSTASH_DEV is refused.*; KEY_PEPPERS .*; ORGANIZATION_RATE_LIMIT /,
    )
    expect(said).not.toContain('canary')
  })

  it('a database that is not there', async () => {
    const said = await refusalOf({
      PORT: String(await freePortPair()),
      DATABASE_URL: 'postgres://user:canary@127.0.0.1:1/database',
    })
    expect(said).toMatch(/^postgres did not start: .*ECONNREFUSED/)
    expect(said).not.toContain('canary')
  })

  it('an unknown option', async () => {
    expect(await refusalOf({}, ['--wat'])).toBe('usage: npm run dev [-- --fresh]')
  })

  it('damaged secrets, without quoting them', async () => {
    writeFileSync(join(folder, 'secrets.json'), '{"adminToken": "canary"')
    const said = await refusalOf({ PORT: String(await freePortPair()) })
    expect(said).toMatch(/secrets\.json is damaged; start with -- --fresh to begin anew$/)
    expect(said).not.toContain('canary')
  })
})
