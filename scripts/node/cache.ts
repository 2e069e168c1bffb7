import { listenOnLoopback, type RunningServer, readBody } from './loopback-server.ts'

/** The answer that is cached under one key. */
interface Entry {
  status: number
  statusText: string
  headers: string[]
  body: Buffer
  storedAt: number
  expiresAt: number
}

/** Cloudflare's limit for one cached object is larger; this store is for small JSON. */
const ENTRY_LIMIT = 32 * 1024 * 1024

const ENTRIES_LIMIT = 2_000

/**
 * Starts the server behind workerd's `cacheApiOutbound`, so that `caches.default` works outside of Cloudflare. The
 * protocol, observed at workerd: match is a GET with `Cache-Control: only-if-cached`, and counts as found when the
 * answer says `CF-Cache-Status: HIT`; put is a PUT whose body is the whole HTTP answer as text; delete is `PURGE`, 404
 * when there was nothing. `CF-Cache-Namespace` names the cache that `caches.open` chose.
 *
 * Entries live as long as `s-maxage` or `max-age` allows; answers that forbid storing are not stored. A match with a condition is
 * answered whole.
 *
 * @param place a port, 0 for any free one; or the path of a Unix socket
 * @param now milliseconds since the epoch
 */
export async function startCache(
  place: number | string = 0,
  now: () => number = Date.now,
): Promise<RunningServer> {
  const entries = new Map<string, Entry>()
  const running = await listenOnLoopback(place, async (request, response) => {
    const key = `${request.headers['cf-cache-namespace'] ?? ''} ${request.headers.host}${request.url}`
    if (request.method === 'PUT') {
      store(entries, key, await readBody(request, ENTRY_LIMIT), now())
      response.writeHead(204).end()
      return
    }
    if (request.method === 'PURGE') {
      response.writeHead(entries.delete(key) ? 200 : 404).end()
      return
    }
    const entry = entries.get(key)
    if (entry === undefined || entry.expiresAt <= now()) {
      entries.delete(key)
      response.writeHead(504, { 'cf-cache-status': 'MISS' }).end()
      return
    }
    const age = Math.floor((now() - entry.storedAt) / 1000)
    const own = ['CF-Cache-Status', 'HIT', 'Age', String(age)]
    response.writeHead(entry.status, entry.statusText, [...entry.headers, ...own]).end(entry.body)
  })
  return { port: running.port, url: running.url, close: running.close }
}

function store(entries: Map<string, Entry>, key: string, message: Buffer, now: number): void {
  const entry = parseAnswer(message, now)
  entries.delete(key)
  if (entry === null || entry.expiresAt <= now) return
  entries.set(key, entry)
  const oldest = entries.keys().next().value
  if (entries.size > ENTRIES_LIMIT && oldest !== undefined) entries.delete(oldest)
}

function parseAnswer(message: Buffer, now: number): Entry | null {
  const end = message.indexOf('\r\n\r\n')
  if (end < 0) return null
  const [statusLine = '', ...lines] = message.subarray(0, end).toString('latin1').split('\r\n')
  const [, status, statusText = ''] = /^HTTP\/1\.[01] (\d{3}) ?(.*)$/.exec(statusLine) ?? []
  if (status === undefined) return null
  const headers: string[] = []
  let cacheControl = ''
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon)
    const value = line.slice(colon + 1).trim()
    if (name.toLowerCase() === 'cache-control') cacheControl = value.toLowerCase()
    if (name.toLowerCase() !== 'transfer-encoding') headers.push(name, value)
  }
  const body = bodyOf(message.subarray(end + 4), lines)
  const expiresAt = now + lifetimeSeconds(cacheControl) * 1000
  return { status: Number(status), statusText, headers, body, storedAt: now, expiresAt }
}

function bodyOf(bytes: Buffer, lines: string[]): Buffer {
  if (!lines.some((line) => /^transfer-encoding:\s*chunked$/i.test(line))) return Buffer.from(bytes)
  const parts: Buffer[] = []
  let offset = 0
  while (offset < bytes.length) {
    const lineEnd = bytes.indexOf('\r\n', offset)
    const size = Number.parseInt(bytes.subarray(offset, lineEnd).toString('latin1'), 16)
    if (lineEnd < 0 || !(size > 0)) break
    parts.push(Buffer.from(bytes.subarray(lineEnd + 2, lineEnd + 2 + size)))
    offset = lineEnd + 2 + size + 2
  }
  return Buffer.concat(parts)
}

function lifetimeSeconds(cacheControl: string): number {
  if (/\b(no-store|no-cache|private)\b/.test(cacheControl)) return 0
  const seconds = /\bs-maxage=(\d+)/.exec(cacheControl) ?? /\bmax-age=(\d+)/.exec(cacheControl)
  return Number(seconds?.[1] ?? 0)
}
