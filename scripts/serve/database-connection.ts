import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import type { PoolConfig } from 'pg'

/** Parameters of libpq that say how TLS is used; everything else of the URL goes to the driver as it is. */
const TLS_PARAMETERS = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey']

/** The modes that this service accepts. libpq's `require` verifies nothing; here it verifies all, as its name promises. */
const VERIFIED_MODES = ['require', 'verify-ca', 'verify-full']

/**
 * How `pg` connects to the database of a URL. TLS is decided here, because drivers read `sslmode` in different ways.
 *
 * @param text `postgres://user:password@host:port/database?sslmode=…`
 * @throws Error with the reason, which holds no part of the URL
 */
export function databaseConnection(text: string): PoolConfig {
  if (!URL.canParse(text) || !/^postgres(ql)?:$/.test(new URL(text).protocol))
    throw new Error('must be a postgres:// connection string')
  const url = new URL(text)
  const mode = url.searchParams.get('sslmode')
  const parameter = (name: string) => url.searchParams.get(name) ?? undefined
  const files = { ca: parameter('sslrootcert'), cert: parameter('sslcert'), key: parameter('sslkey') }
  for (const name of TLS_PARAMETERS) url.searchParams.delete(name)
  const connection = { connectionString: url.href, application_name: 'headgate', keepAlive: true }
  if (mode === null && isThisMachine(url)) return { ...connection, ssl: false }
  if (mode === null)
    throw new Error('needs sslmode=verify-full, or sslmode=disable for a network that others cannot read')
  if (mode === 'disable') return { ...connection, ssl: false }
  const read = Object.entries(files).flatMap(([name, path]) =>
    path === undefined ? [] : [[name, readFile(path)]],
  )
  if (mode === 'no-verify')
    return { ...connection, ssl: { ...Object.fromEntries(read), rejectUnauthorized: false } }
  if (!VERIFIED_MODES.includes(mode))
    throw new Error('has an sslmode other than verify-full, verify-ca, require, no-verify and disable')
  return { ...connection, ssl: { ...Object.fromEntries(read), rejectUnauthorized: true } }
}

function readFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    throw new Error('names a certificate or key file that cannot be read')
  }
}

/** A name without a dot may be a container on another host, so only loopback and socket folders count. */
function isThisMachine({ hostname, searchParams }: URL): boolean {
  const host = searchParams.get('host') ?? decodeURIComponent(hostname)
  if (host.startsWith('/')) return true
  const address = host.replace(/^\[|\]$/g, '')
  return address === 'localhost' || address === '::1' || (isIP(address) === 4 && address.startsWith('127.'))
}
