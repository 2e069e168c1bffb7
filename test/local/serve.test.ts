import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import OpenAI from 'openai'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { startModelUpstream } from '../../scripts/local/model-upstream/server.ts'
import { buildBundle } from '../harness/bundle.ts'
import { upstreamControl } from '../harness/gateway.ts'
import { answered, createRoutedModel, inTurn, type RoutedModel, slowed } from '../harness/routed-model.ts'
import { S3_KEYS, S3_REGION, type S3Server, startS3Server } from '../harness/s3-server.ts'
import {
  addressOf,
  createDatabase,
  freePort,
  nodeSecrets,
  runScript,
  type ServedNode,
  startServe,
} from '../harness/serve-node.ts'
import type { GatewayAddress } from '../harness/start-gateway.ts'
import { administrator, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { missingServers, startRealPostgres, startRealRedis, tellSkipped } from './real-servers.ts'

const missing = missingServers()
if (missing.length > 0) tellSkipped('npm run serve', missing.join(' and no '))

/** Over a megabyte, so that it is stored as content. */
const LARGE = 'It is large. '.repeat(100_000)

describe.skipIf(missing.length > 0 || process.platform !== 'linux')('npm run serve', () => {
  const cleanUps: Array<() => unknown> = []
  let folder: string
  let variables: Record<string, string>
  let s3: S3Server
  let restoredDatabase: string
  let emptyDatabase: string
  let redisPort: number
  let node: ServedNode
  let address: GatewayAddress
  let model: RoutedModel
  let tenant: Tenant

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hg-serve-'))
    cleanUps.push(() => rmSync(folder, { recursive: true, force: true }))
    const [bundle, postgres, redis, upstream, s3Server, port] = await Promise.all([
      buildBundle(),
      startRealPostgres(),
      startRealRedis(),
      startModelUpstream({ port: 0 }),
      startS3Server(),
      freePort(),
    ])
    s3 = s3Server
    cleanUps.push(bundle.remove, postgres.stop, redis.stop, upstream.close, s3.close)
    const [database, second] = [await createDatabase(postgres.url), await createDatabase(postgres.url)]
    restoredDatabase = second
    emptyDatabase = await createDatabase(postgres.url)
    redisPort = Number(new URL(redis.url).port)
    variables = {
      ...nodeSecrets(),
      DATABASE_URL: database,
      REDIS_URL: redis.url,
      CONTENT: join(folder, 'content'),
      DATA_DIR: join(folder, 'data'),
      PORT: String(port),
      // Deliveries reach the gateway although nothing listens at the public origin here.
      BASE_URL: 'https://gateway.invalid',
      TRUSTED_PROXIES: '127.0.0.0/8',
      EGRESS_ALLOW: new URL(upstream.url).host,
      LEDGER_FLUSH_MS: '100',
      MANAGEMENT_RATE_LIMIT: '100000',
      LIMITS_TIMEOUT_MS: '2000',
      STOP_TIMEOUT: '20',
      BUNDLE_DIR: bundle.directory,
    }
    address = addressOf(variables, upstream.url)
    node = startServe(variables)
    await node.ready()
    model = await createRoutedModel(address, ['openai-compatible'])
    tenant = await createTenant(address)
  }, 90_000)
  afterAll(async () => {
    if (node && node.process.exitCode === null) node.process.kill('SIGKILL')
    for (const cleanUp of cleanUps.reverse()) await cleanUp()
  })

  const client = (headers: Record<string, string> = {}, from = address) =>
    new OpenAI({ apiKey: tenant.key, baseURL: `${from.baseUrl}/v1`, defaultHeaders: headers, maxRetries: 0 })
  const said = (text: string) => inTurn(address, answered('chat', text, true))
  const headers = () => ({ authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' })

  /** Begins a run of a new agent with one step. @returns its id */
  async function beginRun(instructions: string): Promise<string> {
    const steps = [{ model: model.id, tools: { hosted: [] }, instructions }]
    const definition = { name: uniqueName('served'), description: 'Made by a test.', steps }
    const agent = await administrator(address).ask<{ id: string }>('POST', `${tenant.base}/agents`, {
      created_by: tenant.userId,
      definition,
    })
    const body = JSON.stringify({ agentId: agent.id })
    const begun = await fetch(`${address.baseUrl}/v1/agents/runs`, {
      method: 'POST',
      headers: headers(),
      body,
    })
    expect(begun.status).toBe(202)
    return ((await begun.json()) as { runId: string }).runId
  }

  const endedRun = (runId: string) =>
    vi.waitFor(
      async () => {
        const answer = await fetch(`${address.baseUrl}/v1/runs/${runId}`, { headers: headers() })
        const run = (await answer.json()) as Record<string, string>
        expect(run.status).not.toBe('in_progress')
        return run
      },
      { timeout: 15_000, interval: 100 },
    )
  const ready = async (from = address) => (await fetch(`${from.baseUrl}/health/ready`)).status

  it('serves a call of the official client, and records the address that the trusted proxy states', async () => {
    const script = await inTurn(address, answered('chat', 'Hello from one node.', false))
    const forwarded = { 'x-forwarded-for': '198.51.100.1, 203.0.113.9', 'cf-connecting-ip': '192.0.2.66' }
    const completion = await client(forwarded).chat.completions.create({
      model: model.id,
      messages: [{ role: 'user', content: script }],
    })
    expect(completion.choices[0]?.message.content).toBe('Hello from one node.')
    const { ask } = administrator(address)
    const audit = await vi.waitFor(async () => {
      const list = await ask<{ data: Array<Record<string, unknown>> }>('GET', `${tenant.base}/audit?limit=50`)
      expect(list.data.some(({ kind }) => kind === 'call')).toBe(true)
      return list.data
    })
    expect(audit.find(({ kind }) => kind === 'call')).toMatchObject({ status: 200, model: model.id })
    // Records have the network of an address.
    expect(JSON.stringify(audit)).toContain('203.0.113.0')
    expect(JSON.stringify(audit)).not.toMatch(/192\.0\.2\.|198\.51\.100\./)
  })

  it('ends the call of a client that leaves while its provider is silent', async () => {
    const script = await inTurn(address, held(answered('chat', 'Never wanted.', true), 'never'))
    const stream = await client().chat.completions.create({
      model: model.id,
      messages: [{ role: 'user', content: script }],
      stream: true,
    })
    await stream[Symbol.asyncIterator]().next()
    stream.controller.abort()
    await vi.waitFor(
      async () => {
        const [request] = await upstreamControl(address).requests(0, script)
        expect(request?.clientClosedAt).toEqual(expect.any(Number))
      },
      { timeout: 5_000, interval: 50 },
    )
    expect(node.lines().filter(({ event }) => event === 'process_ended')).toEqual([])
  })

  it('runs an agent by deliveries of its own queue', async () => {
    const run = await beginRun(`${await said('The run is done.')} Work.`)
    expect(await endedRun(run)).toMatchObject({
      status: 'success',
      result: expect.stringContaining('The run is done.'),
    })
  })

  it('resumes a response and continues a run after the gateway was killed', async () => {
    const cut = await inTurn(address, slowed(answered('chat', 'Half of it.', true), 60_000))
    const events: string[] = []
    const stream = await client().responses.create({
      model: model.id,
      input: `${cut} Work.`,
      background: true,
      store: true,
      stream: true,
    })
    let id = ''
    let last = 0
    const again = await inTurn(
      address,
      slowed(answered('chat', 'Never seen.', true), 60_000),
      answered('chat', 'After the kill.', true),
    )
    const run = await beginRun(`${again} Work.`)
    try {
      for await (const event of stream) {
        if (event.type === 'response.created') id = event.response.id
        last = event.sequence_number
        events.push(event.type)
        if (event.type !== 'response.output_text.delta') continue
        await vi.waitFor(async () =>
          expect(await upstreamControl(address).requests(0, again)).toHaveLength(1),
        )
        process.kill(Number((await node.ready()).gateway), 'SIGKILL')
      }
    } catch {
      // The connection ended with the process.
    }
    expect(events.at(-1)).toBe('response.output_text.delta')
    const resumed = await vi.waitFor(
      () => client().responses.retrieve(id, { stream: true, starting_after: last }),
      { timeout: 15_000, interval: 200 },
    )
    const read = async (): Promise<void> => {
      for await (const event of resumed) {
        expect(event.sequence_number).toBe(last + 1)
        last = event.sequence_number
      }
    }
    // Its model's answer cannot be continued: what was generated stays, and the stream ends with the reason.
    await expect(read()).rejects.toThrow('The response was interrupted.')
    expect(await client().responses.retrieve(id)).toMatchObject({
      status: 'failed',
      output_text: 'Half of it.',
    })
    expect(await endedRun(run)).toMatchObject({
      status: 'success',
      result: expect.stringContaining('After the kill.'),
    })
    expect(node.lines().filter(({ event }) => event === 'process_started_again')).toMatchObject([
      { process: 'gateway' },
    ])
  })

  it('starts its services and its front door again', async () => {
    const { services, edge } = await node.ready()
    process.kill(Number(services), 'SIGKILL')
    process.kill(Number(edge), 'SIGKILL')
    await vi.waitFor(
      async () => {
        const again = node.lines().filter(({ event }) => event === 'process_started_again')
        expect(again.map(({ process: name }) => name).sort()).toEqual(['edge', 'gateway', 'services'])
        expect(await ready()).toBe(200)
      },
      { timeout: 15_000, interval: 200 },
    )
  })

  it('refuses a second node on its folder', async () => {
    const second = startServe({ ...variables, PORT: String(await freePort()) })
    expect(await second.ended()).toBe(1)
    expect(second.output()).toContain('is in use by another process')
  })

  it('is backed up while it serves, and restored elsewhere: records, balances and conversations agree', async () => {
    const stored = await client().responses.create({
      model: model.id,
      input: `${await said('Remembered.')} ${LARGE}`,
      store: true,
    })
    const backup = join(folder, 'backup')
    const made = await runScript('backup', ['--to', backup], variables)
    expect(made).toMatchObject({
      code: 0,
      text: expect.stringMatching(/1 objects of content; calls were refused for \d/),
    })
    // The backup has waited for that.
    expect(await ready()).toBe(200)
    for (const place of ['data', 'content', 'backup']) expect(openToOthers(join(folder, place))).toEqual([])
    expect(readFileSync(join(backup, 'manifest.json'), 'utf8')).not.toContain(variables.KEY_PEPPERS?.slice(3))

    const elsewhere = {
      ...variables,
      DATABASE_URL: restoredDatabase,
      DATA_DIR: join(folder, 'restored'),
      CONTENT: 's3://content/gate',
      S3_ENDPOINT: s3.url,
      AWS_REGION: S3_REGION,
      AWS_ACCESS_KEY_ID: S3_KEYS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: S3_KEYS.secretAccessKey,
      PORT: String(await freePort()),
    }
    const from = ['--from', backup]
    const otherKeys = await runScript('restore', from, {
      ...elsewhere,
      VAULT_KEYS: nodeSecrets().VAULT_KEYS ?? '',
    })
    expect(otherKeys).toMatchObject({
      code: 1,
      text: expect.stringContaining('the key v1 of VAULT_KEYS is not that'),
    })
    expect(
      await runScript('restore', from, { ...elsewhere, DATABASE_URL: variables.DATABASE_URL ?? '' }),
    ).toMatchObject({ code: 1, text: expect.stringContaining('the database is not empty') })
    expect(await runScript('restore', from, elsewhere)).toMatchObject({ code: 0 })
    expect((await runScript('restore', from, elsewhere)).text).toContain('is not empty')

    const second = startServe(elsewhere)
    try {
      await second.ready()
      const there = addressOf(elsewhere, address.standIns.modelUpstream)
      const { ask } = administrator(there)
      const balance = `${tenant.base}/credits`
      expect(await ask('GET', balance)).toEqual(await administrator(address).ask('GET', balance))
      const before = await upstreamControl(address).lastRequest()
      const next = await client({}, there).responses.create({
        model: model.id,
        input: `${await said('Continued.')} And?`,
        previous_response_id: stored.id,
      })
      expect(next.output_text).toBe('Continued.')
      const [sent] = await upstreamControl(address).requests(before)
      expect(String(sent?.body)).toContain('It is large.')
      await expectVerified(there)
      expect(s3.objects.size).toBe(1)
      expect(s3.refused).toBe(0)
    } finally {
      second.process.kill('SIGTERM')
      expect(await second.ended()).toBe(0)
    }
  }, 60_000)

  it('serves again after a backup that gave up on a table locked by another session', async () => {
    const holder = new pg.Client(variables.DATABASE_URL)
    await holder.connect()
    try {
      // Nothing that this node does here needs it.
      await holder.query('begin; lock table setup_links in access exclusive mode')
      const locked = join(folder, 'locked-backup')
      expect(await runScript('backup', ['--to', locked], variables)).toMatchObject({
        code: 1,
        text: expect.stringContaining('backup: another session has locked a table for more than 10 s'),
      })
      expect(await ready()).toBe(200)
      expect(existsSync(join(locked, 'manifest.json'))).toBe(false)
    } finally {
      await holder.end()
    }
  }, 60_000)

  it('lets a stream end when it is stopped, refuses new calls meanwhile, and leaves no process', async () => {
    const line = await node.ready()
    const script = await inTurn(address, held(answered('chat', 'The end of the stream.', true), 'stop'))
    const stream = await client().chat.completions.create({
      model: model.id,
      messages: [{ role: 'user', content: script }],
      stream: true,
    })
    const unread = await client().responses.create({
      model: model.id,
      input: await inTurn(address, held(answered('chat', 'Nobody reads it.', true), 'stop')),
      background: true,
      store: true,
    })
    const iterator = stream[Symbol.asyncIterator]()
    const texts = [(await iterator.next()).value?.choices[0]?.delta.content]
    await vi.waitFor(async () => expect(await upstreamControl(address).waiting()).toMatchObject({ stop: 2 }))
    node.process.kill('SIGTERM')
    await vi.waitFor(async () => expect(await ready()).toBe(503))
    const refused = await fetch(`${address.baseUrl}/v1/models`)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
    await upstreamControl(address).release('stop')
    for (let next = await iterator.next(); !next.done; next = await iterator.next())
      texts.push(next.value.choices[0]?.delta.content)
    expect(texts.join('')).toContain('The end of the stream.')
    expect(await node.ended()).toBe(0)
    for (const name of ['edge', 'services', 'gateway', 'tools'])
      expect(() => process.kill(Number(line[name]), 0)).toThrow()
    expect(node.lines().filter(({ event }) => event.endsWith('_cut'))).toEqual([])
    const database = new pg.Client(variables.DATABASE_URL)
    await database.connect()
    const { rows } = await database.query('select status from responses where id = $1', [unread.id])
    await database.end()
    expect(rows).toEqual([{ status: 'completed' }])
    for (const secret of ['ADMIN_TOKEN', 'KEY_PEPPERS', 'VAULT_KEYS'])
      expect(node.output()).not.toContain(variables[secret])
    expect(node.output()).not.toContain(tenant.key)
  })

  it('starts while its Redis is away, and is ready when Redis has come', async () => {
    const [port, later] = [await freePort(), await freePort()]
    const early = startServe({
      ...variables,
      DATABASE_URL: emptyDatabase,
      DATA_DIR: join(folder, 'early'),
      CONTENT: join(folder, 'early-content'),
      PORT: String(port),
      REDIS_URL: `redis://127.0.0.1:${later}`,
    })
    const relay = createServer((socket) => {
      const onward = connect(redisPort, '127.0.0.1')
      for (const each of [socket, onward]) each.on('error', () => {})
      socket.pipe(onward).pipe(socket)
    })
    try {
      const away = expect.objectContaining({ event: 'redis_away', source: 'services' })
      await vi.waitFor(() => expect(early.lines()).toContainEqual(away), { timeout: 30_000, interval: 50 })
      await new Promise<void>((resolve) => relay.listen(later, '127.0.0.1', resolve))
      await early.ready()
      expect(await ready({ ...address, baseUrl: `http://127.0.0.1:${port}` })).toBe(200)
      const events = early.lines().map(({ event }) => event)
      expect(events).toContain('redis_reached')
      expect(events).not.toContain('process_ended')
    } finally {
      early.process.kill('SIGTERM')
      await early.ended()
      relay.close()
    }
  }, 90_000)

  it('refuses a folder that is not that of the database', async () => {
    const other = join(folder, 'other')
    mkdirSync(other)
    const lost = startServe({ ...variables, DATA_DIR: other })
    expect(await lost.ended()).toBe(1)
    expect(lost.output()).toContain('DATA_DIR is empty, and the database is not')
  })
})

/** Files and folders that other users may read or write. The runtime's copy of the bundle has no secret. */
const openToOthers = (path: string): string[] =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() || entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((each) => !each.includes('/run/') && (statSync(each).mode & 0o077) !== 0)

/** The frames of a streamed answer, of which the last come after a signal. */
function held(steps: ReturnType<typeof answered>, signal: string): ReturnType<typeof answered> {
  const sse = steps.flatMap((step) => ('sse' in step ? step.sse : []))
  const type = { headers: { 'content-type': 'text/event-stream' } }
  return [type, { sse: sse.slice(0, 1) }, { waitForSignal: signal }, { sse: sse.slice(1) }, { end: true }]
}

/** Every chain of the installation holds, and ends where its ledger does. */
async function expectVerified({ baseUrl, adminToken }: GatewayAddress): Promise<void> {
  const script = join(import.meta.dirname, '../../scripts/admin.ts')
  const env = { ...process.env, HEADGATE_URL: baseUrl, ADMIN_TOKEN: adminToken }
  const { code, text } = await new Promise<{ code: number; text: string }>((resolve) =>
    execFile(process.execPath, [script, 'audit', 'verify'], { env }, (error, out, err) =>
      resolve({ code: error === null ? 0 : Number(error.code), text: out + err }),
    ),
  )
  expect({ code, text }).toMatchObject({ code: 0 })
}
