import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startContentStore } from '../../scripts/node/content-store/server.ts'
import type { RunningServer } from '../../scripts/node/loopback-server.ts'
import { type RunningWorkerd, startWorkerd } from '../../scripts/node/workerd.ts'
import { readRuntimeSettings } from '../../scripts/node/wrangler-settings.ts'
import { claimContent } from '../../scripts/serve/content-claim.ts'

/** Runs an operation of the binding and returns its result; content is unchanged. */
const WORKER = `
const describe = (object) => object && {
  key: object.key, size: object.size, etag: object.etag, range: object.range, md5: object.checksums.toJSON().md5,
  httpMetadata: object.httpMetadata, customMetadata: object.customMetadata, uploaded: object.uploaded.getTime(),
}
const operations = {
  put: async (bucket, { key, options }, body) => describe(await bucket.put(key, await body.arrayBuffer(), options)),
  head: async (bucket, { key }) => describe(await bucket.head(key)),
  describe: async (bucket, { key, options }) => {
    const object = await bucket.get(key, options)
    return object && { ...describe(object), text: await object.text() }
  },
  delete: async (bucket, _, body) => (await bucket.delete(await body.json())) ?? null,
  list: async (bucket, { options }) => {
    const { objects, truncated, cursor } = await bucket.list(options)
    return { objects: objects.map(describe), truncated, cursor: cursor ?? null }
  },
  multipart: async (bucket, { key }) => (await bucket.createMultipartUpload(key)).uploadId,
}
export default {
  async fetch(request, env) {
    const { operation, ...parameters } = JSON.parse(decodeURIComponent(new URL(request.url).search.slice(1)))
    try {
      if (operation === 'content') return new Response((await env.CONTENT.get(parameters.key)).body)
      return Response.json(await operations[operation](env.CONTENT, parameters, request))
    } catch (error) {
      return Response.json(error.message, { status: 500 })
    }
  },
}`

let bundle: string
let unused: string
let folder: string
let store: RunningServer
let workerd: RunningWorkerd

beforeAll(async () => {
  bundle = mkdtempSync(join(tmpdir(), 'headgate-content-worker-'))
  writeFileSync(join(bundle, 'gateway.js'), WORKER)
  // Not in the bundle: the runtime copies that, and a socket cannot be copied.
  unused = mkdtempSync(join(tmpdir(), 'headgate-content-'))
  store = await startContentStore({ folder: unused, claim: claimContent })
  workerd = await startWorkerd({
    bundleDirectory: bundle,
    bindings: {},
    buckets: { CONTENT: store.url },
    durableObjects: {},
    cache: false,
    ...readRuntimeSettings(join(import.meta.dirname, '../../wrangler.toml')),
  })
})
afterAll(async () => {
  await Promise.all([workerd?.stop(), store?.close()])
  for (const path of [bundle, unused]) rmSync(path, { recursive: true, force: true })
})

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-content-'))
  await restart()
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

/** Names in the folder, but for the claim. */
const objectFiles = () => readdirSync(folder).filter((name) => name !== 'claim.sock')

/** Another process on the same port would be the same to the runtime. */
async function restart(): Promise<void> {
  const { port } = store
  await store.close()
  store = await startContentStore({ folder, port, claim: claimContent })
}

function send(operation: string, parameters: unknown = {}, body?: Uint8Array | string): Promise<Response> {
  const query = encodeURIComponent(JSON.stringify({ operation, ...(parameters as object) }))
  return fetch(`${workerd.url}/?${query}`, { method: 'POST', ...(body !== undefined && { body }) })
}

async function call(operation: string, parameters: unknown = {}, body?: Uint8Array | string) {
  const response = await send(operation, parameters, body)
  const answer = await response.json()
  if (!response.ok) throw new Error(String(answer))
  return answer as Record<string, unknown> | null
}

const KEY = 'items/organization/msg_ü 1'

describe('the R2 binding over the content store', () => {
  it('reads stored content with its metadata', async () => {
    const options = {
      httpMetadata: { contentType: 'application/json' },
      customMetadata: { made: 'by a test' },
    }
    const md5 = 'acbd18db4cc2f85cedef654fccc4a4d8'
    const known = { key: KEY, size: 3, etag: md5, md5, ...options }
    expect(await call('put', { key: KEY, options }, 'foo')).toMatchObject(known)
    expect(await call('head', { key: KEY })).toMatchObject(known)
    expect(await call('describe', { key: KEY })).toMatchObject({ ...known, text: 'foo' })
    const { uploaded } = (await call('head', { key: KEY })) ?? {}
    expect(Math.abs(Number(uploaded) - Date.now())).toBeLessThan(60_000)
  })

  it('returns null for a missing object, and accepts its removal', async () => {
    expect(await call('head', { key: KEY })).toBeNull()
    expect(await call('describe', { key: KEY })).toBeNull()
    expect(await call('delete', {}, JSON.stringify(KEY))).toBeNull()
  })

  it('replaces, and keeps an empty content', async () => {
    await call('put', { key: KEY }, 'first, the longer one')
    await call('put', { key: KEY }, 'second')
    expect(await call('describe', { key: KEY })).toMatchObject({ size: 6, text: 'second' })
    await call('put', { key: KEY }, '')
    expect(await call('describe', { key: KEY })).toMatchObject({ size: 0, text: '' })
    expect(objectFiles()).toHaveLength(1)
  })

  it('carries an object of 52 MB whole', async () => {
    const content = randomBytes(52 * 1024 * 1024)
    expect(await call('put', { key: KEY }, content)).toMatchObject({ size: content.length })
    const read = Buffer.from(await (await send('content', { key: KEY })).arrayBuffer())
    expect(read.equals(content)).toBe(true)
  })

  it.each([
    [{ offset: 2, length: 3 }, '234'],
    [{ offset: 7 }, '789'],
    [{ length: 2 }, '01'],
    [{ suffix: 4 }, '6789'],
    [{ suffix: 40 }, '0123456789'],
    [{ offset: 8, length: 100 }, '89'],
  ])('reads the range %j', async (range, text) => {
    await call('put', { key: KEY }, '0123456789')
    expect(await call('describe', { key: KEY, options: { range } })).toMatchObject({ text, size: 10 })
  })

  it('refuses a range behind the end', async () => {
    await call('put', { key: KEY }, '0123456789')
    await expect(call('describe', { key: KEY, options: { range: { offset: 11 } } })).rejects.toThrow(/10039/)
  })

  it('lists by prefix, in pages, in the order of bytes', async () => {
    for (const key of ['b/1', 'a/2', 'a/10', 'a/1', 'a/é']) await call('put', { key }, key)
    const keysOf = (answer: Awaited<ReturnType<typeof call>>) =>
      ((answer?.objects ?? []) as Array<{ key: string }>).map(({ key }) => key)
    const whole = await call('list', { options: { prefix: 'a/' } })
    expect(keysOf(whole)).toEqual(['a/1', 'a/10', 'a/2', 'a/é'])
    expect(whole).toMatchObject({ truncated: false, cursor: null })
    const first = await call('list', { options: { prefix: 'a/', limit: 3 } })
    expect(keysOf(first)).toEqual(['a/1', 'a/10', 'a/2'])
    expect(first?.truncated).toBe(true)
    const rest = await call('list', { options: { prefix: 'a/', limit: 3, cursor: first?.cursor } })
    expect(keysOf(rest)).toEqual(['a/é'])
    expect(keysOf(await call('list', { options: { startAfter: 'a/2' } }))).toEqual(['a/é', 'b/1'])
    expect(keysOf(await call('list', { options: { prefix: 'none' } }))).toEqual([])
  })

  it('lists metadata only where it is asked for', async () => {
    await call('put', { key: KEY, options: { customMetadata: { a: 'b' } } }, 'x')
    expect(await call('list')).toMatchObject({ objects: [{ customMetadata: {} }] })
    const include = ['customMetadata']
    expect(await call('list', { options: { include } })).toMatchObject({
      objects: [{ customMetadata: { a: 'b' } }],
    })
  })

  it('deletes one and a thousand', async () => {
    for (const key of ['a', 'b', 'c']) await call('put', { key }, key)
    await call('delete', {}, JSON.stringify('a'))
    expect((await call('list'))?.objects).toHaveLength(2)
    const others = Array.from({ length: 998 }, (_, index) => `no-such-key-${index}`.padEnd(1_000, 'x'))
    await call('delete', {}, JSON.stringify(['b', ...others, 'c']))
    expect(await call('list')).toMatchObject({ objects: [] })
    expect(objectFiles()).toEqual([])
  })

  it('keeps everything over a restart', async () => {
    const options = { customMetadata: { a: 'b' } }
    await call('put', { key: KEY, options }, 'content')
    const before = await call('head', { key: KEY })
    writeFileSync(join(folder, 'left-by-a-crash.part'), 'half')
    writeFileSync(join(folder, 'torn.object'), 'not the end of an object')
    writeFileSync(join(folder, 'empty.object'), '')
    await restart()
    expect(await call('head', { key: KEY })).toEqual(before)
    expect(await call('describe', { key: KEY })).toMatchObject({ text: 'content' })
    expect((await call('list'))?.objects).toHaveLength(1)
    expect(readdirSync(folder)).not.toContain('left-by-a-crash.part')
  })

  it.each([
    ['put', { key: KEY, options: { onlyIf: { etagMatches: 'x' } } }, /no onlyIf/],
    ['put', { key: KEY, options: { md5: 'acbd18db4cc2f85cedef654fccc4a4d8' } }, /no md5/],
    ['describe', { key: KEY, options: { onlyIf: { etagMatches: 'x' } } }, /no onlyIf/],
    ['list', { options: { delimiter: '/' } }, /no delimiter/],
    ['multipart', { key: KEY }, /no createMultipartUpload/],
    ['put', { key: 'k'.repeat(1025) }, /10020/],
  ])('refuses what it lacks: %s %j', async (operation, parameters, message) => {
    await expect(call(operation, parameters, 'foo')).rejects.toThrow(message)
    expect(await call('list')).toMatchObject({ objects: [] })
  })
})

describe('the content store itself', () => {
  /** Over a connection of its own, since the store on this port is another one for each test. */
  function put(json: string, content: string, headers: Record<string, string> = {}) {
    const body = Buffer.from(json + content)
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const outgoing = request(
      {
        host: '127.0.0.1',
        port: store.port,
        method: 'PUT',
        agent: false,
        headers: {
          'cf-r2-metadata-size': Buffer.byteLength(json),
          'content-length': body.length,
          ...headers,
        },
      },
      resolve,
    )
    outgoing.on('error', reject)
    outgoing.end(body)
    return promise
  }

  it.each([
    ['no JSON', 'put', {}],
    ['nothing', '', {}],
    ['an operation that is cut off', '{}', { 'cf-r2-metadata-size': '1000' }],
    ['a put of nothing named', '{"method":"put"}', {}],
  ])('answers 400 to %s', async (_what, json, headers) => {
    const response = await put(json, '', headers)
    expect(response.statusCode).toBe(400)
    expect(JSON.parse(String(response.headers['cf-r2-error']))).toMatchObject({ v4code: 10_029 })
  })

  it('keeps the old object when the new one does not come whole', async () => {
    await put(JSON.stringify({ method: 'put', object: KEY }), 'old')
    const socket = connect(store.port, '127.0.0.1')
    const json = JSON.stringify({ method: 'put', object: KEY })
    const head = `PUT / HTTP/1.1\r\nhost: x\r\ncf-r2-metadata-size: ${Buffer.byteLength(json)}\r\ncontent-length: 1000\r\n\r\n`
    await new Promise<void>((resolve) => socket.write(`${head}${json}new, but not all`, () => resolve()))
    await expect.poll(() => readdirSync(folder).filter((name) => name.endsWith('.part')).length).toBe(1)
    socket.destroy()
    await expect.poll(() => readdirSync(folder).filter((name) => name.endsWith('.part')).length).toBe(0)
    expect(await call('describe', { key: KEY })).toMatchObject({ text: 'old' })
  })

  it('locks its folder until it is closed, by a socket in it that is no object', async () => {
    await expect(startContentStore({ folder, claim: claimContent })).rejects.toThrow(
      `${folder} is in use by another process`,
    )
    expect(readdirSync(folder)).toEqual(['claim.sock'])
    expect(await call('list', {})).toMatchObject({ objects: [], truncated: false })
    await restart()
    expect(readdirSync(dirname(folder)).filter((name) => name.startsWith(`${basename(folder)}.`))).toEqual([])
  })

  it('refuses a folder with files that is open to other users, and closes an empty one', async () => {
    const open = mkdtempSync(join(tmpdir(), 'headgate-open-'))
    try {
      chmodSync(open, 0o755)
      await (await startContentStore({ folder: open, claim: claimContent })).close()
      expect(statSync(open).mode & 0o777).toBe(0o700)
      chmodSync(open, 0o755)
      writeFileSync(join(open, 'of another program'), '')
      await expect(startContentStore({ folder: open, claim: claimContent })).rejects.toThrow(
        `run chmod 700 ${open}`,
      )
      expect(statSync(open).mode & 0o777).toBe(0o755)
    } finally {
      rmSync(open, { recursive: true })
    }
  })

  it('leaves its files to their owner only', async () => {
    await put(JSON.stringify({ method: 'put', object: KEY }), 'content')
    const [name = ''] = objectFiles()
    expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600)
    expect(readFileSync(join(folder, name), 'utf8')).toContain('content')
  })
})
