import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ObjectFiles } from '../../scripts/node/content-store/object-files.ts'
import { S3Objects } from '../../scripts/node/content-store/s3-objects.ts'
import { copyContent } from '../../scripts/serve/backup/content.ts'
import { S3_KEYS, S3_REGION, type S3Server, startS3Server } from '../harness/s3-server.ts'

let server: S3Server
let reports: string[]

beforeEach(async () => {
  server = await startS3Server(2)
  reports = []
})
afterEach(() => server.close())

const bucket = (more: object = {}) =>
  new S3Objects(
    {
      bucket: 'content',
      prefix: 'gate/',
      endpoint: server.url,
      region: S3_REGION,
      sessionToken: null,
      ...S3_KEYS,
      ...more,
    },
    (message) => reports.push(message),
  )

async function* pieces(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text)
}

const fields = (key: string) => ({ key, httpFields: {}, customFields: [] })

async function textOf(objects: S3Objects | ObjectFiles, key: string, offset = 0, length?: number) {
  const opened = await objects.open(key)
  if (opened === null) return null
  const parts: Buffer[] = []
  for await (const part of await opened.read(offset, length ?? opened.object.size)) parts.push(part)
  await opened.close()
  return Buffer.concat(parts).toString()
}

describe('content in a bucket', () => {
  it('is stored, read whole and in part, replaced and deleted, with signatures that the server accepts', async () => {
    const objects = bucket()
    const stored = await objects.put(fields('items/org/one'), pieces('first', ' second'), 12)
    expect(stored).toMatchObject({ size: 12, etag: createHash('md5').update('first second').digest('hex') })
    expect([...server.objects.keys()]).toEqual(['/content/gate/items/org/one'])
    expect(await textOf(objects, 'items/org/one')).toBe('first second')
    expect(await textOf(objects, 'items/org/one', 6, 3)).toBe('sec')
    await objects.put(fields('items/org/one'), pieces('new'), 3)
    expect(await objects.head('items/org/one')).toMatchObject({ size: 3 })
    await objects.delete(['items/org/one', 'items/org/none'])
    expect([await objects.open('items/org/one'), server.objects.size]).toEqual([null, 0])
    expect([server.refused, reports]).toEqual([0, []])
  })

  it('keeps the metadata of its writer', async () => {
    const described = {
      key: 'a',
      httpFields: { contentType: 'text/plain' },
      customFields: [{ k: 'ä', v: 'ü' }],
    }
    await bucket().put(described, pieces('x'), 1)
    expect(await bucket().head('a')).toMatchObject(described)
  })

  it('is listed page by page, in order, below the prefix', async () => {
    const objects = bucket()
    for (const key of ['c', 'a', 'b', 'e/f', 'd']) await objects.put(fields(key), pieces(key), key.length)
    server.objects.set('/content/other/z', { body: Buffer.from('z'), fields: undefined })
    const first = await objects.list('', undefined, 2)
    expect([first.objects.map(({ key }) => key), first.more]).toEqual([['a', 'b'], true])
    const last = await objects.list('', 'd', 2)
    expect([last.objects.map(({ key }) => key), last.more]).toEqual([['e/f'], false])
  })

  it('repeats what the server could not take, once', async () => {
    server.failures.push(503)
    expect(await bucket().put(fields('a'), pieces('x'), 1)).toMatchObject({ size: 1 })
    server.failures.push(500, 500)
    await expect(bucket().put(fields('b'), pieces('x'), 1)).rejects.toMatchObject({
      status: 500,
      code: 10_001,
    })
    expect(reports).toHaveLength(3)
  })

  it('refuses a wrong length, and keys that need an encoding, before anything is sent', async () => {
    await expect(bucket().put(fields('a'), pieces('xy'), 3)).rejects.toThrow('2 bytes and not 3')
    for (const key of ['a b', '..', '.', '../a', 'a/../b', 'a/./b', 'a/..'])
      await expect(bucket().head(key)).rejects.toMatchObject({ code: 10_020 })
    await expect(bucket({ prefix: '../other/' }).head('a')).rejects.toMatchObject({ code: 10_020 })
    expect(server.requests).toEqual([])
    await bucket().put(fields('a/..b/c...'), pieces('x'), 1)
    server.objects.clear()
    expect(server.objects.size).toBe(0)
  })

  it('reports a refusal without the key or the secret', async () => {
    const wrong = bucket({ secretAccessKey: 'another secret' })
    await expect(wrong.head('a')).rejects.toMatchObject({ code: 10_001 })
    expect(reports).toEqual(['HEAD of the content store failed: status 403'])
    expect(server.refused).toBe(1)
  })

  it('is copied to a folder and back, without what was erased', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-s3-'))
    try {
      const files = new ObjectFiles(folder)
      await files.put(fields('old'), pieces('erased at the source'), 20)
      await bucket().put(fields('items/org/one'), pieces('one'), 3)
      await bucket().put(fields('items/org/empty'), pieces(), 0)
      expect(await copyContent(bucket(), files)).toEqual({ objects: 2, bytes: 3 })
      expect([await textOf(files, 'items/org/one'), await files.head('old')]).toEqual(['one', undefined])
      server.objects.clear()
      expect(await copyContent(new ObjectFiles(folder), bucket())).toEqual({ objects: 2, bytes: 3 })
      expect(await textOf(bucket(), 'items/org/one')).toBe('one')
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('is copied without what is erased meanwhile, in a bucket and in a folder', async () => {
    const [one, other] = [
      mkdtempSync(join(tmpdir(), 'headgate-s3-')),
      mkdtempSync(join(tmpdir(), 'headgate-s3-')),
    ]
    try {
      for (const key of ['a', 'b', 'c']) await bucket().put(fields(key), pieces('text'), 4)
      server.beforeContent = (path) => server.objects.delete('/content/gate/b') && path
      expect(await copyContent(bucket(), new ObjectFiles(one))).toEqual({ objects: 2, bytes: 8 })
      const reader = new ObjectFiles(one, true)
      await new ObjectFiles(one).delete(['a'])
      expect(await copyContent(reader, new ObjectFiles(other))).toEqual({ objects: 1, bytes: 4 })
      expect(await textOf(new ObjectFiles(other), 'c')).toBe('text')
    } finally {
      for (const folder of [one, other]) rmSync(folder, { recursive: true })
    }
  })

  it('is copied again only if it has changed, whatever its ETag is', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-s3-'))
    try {
      server.hasOpaqueTags = true
      const seen = new Map<string, string>()
      for (const key of ['a', 'b']) await bucket().put(fields(key), pieces('text'), 4)
      await copyContent(bucket(), new ObjectFiles(folder), seen)
      await bucket().put(fields('b'), pieces('next'), 4)
      server.requests.length = 0
      expect(await copyContent(bucket(), new ObjectFiles(folder), seen)).toEqual({ objects: 2, bytes: 8 })
      expect(server.requests.filter((line) => line.startsWith('GET /content/gate'))).toEqual([
        'GET /content/gate/b',
      ])
      expect(await textOf(new ObjectFiles(folder), 'b')).toBe('next')
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('may take longer than a request, as long as it arrives', async () => {
    await bucket().put(fields('a'), pieces('text'), 4)
    const opened = await bucket().open('a')
    let sendRest = (): void => {}
    server.withinContent = () => new Promise<void>((resolve) => (sendRest = resolve))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const read = async () => {
        const parts: Buffer[] = []
        for await (const part of (await opened?.read(0, 4)) ?? []) parts.push(part)
        return Buffer.concat(parts).toString()
      }
      const whole = read()
      await vi.waitUntil(() => server.requests.at(-1)?.startsWith('GET'))
      vi.advanceTimersByTime(50_000)
      await new Promise((resolve) => setImmediate(resolve))
      sendRest()
      expect(await whole).toBe('text')
      const stuck = read().catch((error: Error) => error)
      await vi.waitUntil(() => server.requests.filter((line) => line.startsWith('GET')).length === 2)
      for (let turn = 0; turn < 20; turn += 1) {
        await new Promise((resolve) => setImmediate(resolve))
        vi.advanceTimersByTime(10_000)
      }
      expect(await stuck).toBeInstanceOf(Error)
      sendRest()
    } finally {
      vi.useRealTimers()
    }
  })
})

it('a folder is listed page by page with few comparisons', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-list-'))
  try {
    const files = new ObjectFiles(folder)
    const keys = Array.from({ length: 1_000 }, (_, index) => `k/${(index * 7_919) % 1_000}`)
    for (const key of keys) await files.put(fields(key), pieces('x'), 1)
    const compare = vi.spyOn(Buffer, 'compare')
    const listed: string[] = []
    for (let more = true; more; ) {
      const page = await files.list('k/', listed.at(-1), 10)
      listed.push(...page.objects.map(({ key }) => key))
      more = page.more
    }
    const comparisons = compare.mock.calls.length
    compare.mockRestore()
    expect(listed).toEqual(keys.toSorted())
    expect(comparisons).toBeLessThan(20_000)
    await files.delete(['k/5'])
    await files.put(fields('k/é'), pieces('x'), 1)
    await files.put(fields('k/𐀀'), pieces('x'), 1)
    await files.put(fields('k/￼'), pieces('x'), 1)
    expect((await files.list('k/5', undefined, 1)).objects.map(({ key }) => key)).toEqual(['k/50'])
    expect((await files.list('', 'k/999', 9)).objects.map(({ key }) => key)).toEqual(['k/é', 'k/￼', 'k/𐀀'])
    expect((await files.list('z', undefined, 9)).objects).toEqual([])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
