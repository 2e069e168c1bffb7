import * as z from 'zod'
import type { KeyRing } from './lib/crypto.ts'
import { withoutTrailing } from './lib/without-trailing.ts'

/** `host:port` pairs that the guarded fetch allows although they are loopback or private. */
const hosts = (fallback: string) =>
  z
    .string()
    .default(fallback)
    .transform((text) => text.split(',').map((part) => part.trim().toLowerCase()))
    .transform((parts) => parts.filter((part) => part !== ''))
const hostList = hosts('')

/** Vendors that state errors in a stream without the key of the request. */
const VENDOR_HOSTS = [
  'api.openai.com',
  'api.anthropic.com',
  'generativelanguage.googleapis.com',
  'openrouter.ai',
  'api.groq.com',
  'api.mistral.ai',
  'api.deepseek.com',
  'api.x.ai',
]

const wholeNumber = (fallback: number, minimum = 1) => z.coerce.number().int().min(minimum).default(fallback)

const secret = z.string().min(16, 'must have at least 16 characters')

/** Open Responses, WebSocket transport. */
const LONGEST_CONNECTION_MS = 3_600_000

/** `id:base64` pairs, 32 bytes each, the current one first. */
const keyRing = z.string().transform((text, context): KeyRing => {
  const ring = new Map<string, Uint8Array>()
  for (const part of text.split(',')) {
    const [id, encoded] = part.trim().split(':')
    const key = Buffer.from(encoded ?? '', 'base64')
    if (!id || !/^[a-z0-9_-]+$/i.test(id) || key.length !== 32) {
      context.addIssue({ code: 'custom', message: 'must be id:base64 pairs of 32-byte keys, current first' })
      return z.NEVER
    }
    ring.set(id, key)
  }
  return ring
})

/** An origin without a trailing slash. */
const origin = z.url().transform((text) => withoutTrailing(text, '/'))

/** An address without a trailing slash and without a credential, which would be in the errors of requests. */
const address = z
  .url({ protocol: /^https?$/ })
  .refine((text) => !URL.canParse(text) || new URL(text).username === '', 'must not have a credential')
  .transform((text) => withoutTrailing(text, '/'))

/** Origins as browsers send them: scheme, host and port, without a path. */
const originList = z
  .string()
  .default('')
  .transform((text) => text.split(',').map((part) => withoutTrailing(part.trim(), '/')))
  .transform((parts) => parts.filter((part) => part !== ''))
  .refine((parts) => parts.every(isOrigin), 'must be origins, such as https://app.example')

const isOrigin = (text: string): boolean =>
  /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Whether an address is on this machine, over plain HTTP. */
export const isLocalAddress = (text: string): boolean => {
  if (!URL.canParse(text)) return false
  const { protocol, hostname } = new URL(text)
  return protocol === 'http:' && LOOPBACK.has(hostname)
}

const MEMBER = /^([0-9a-f-]{36})\/([0-9a-f-]{36})$/

/** `token,organization/user,…`: a token of one use, and the members that it signs in as, the first one first. */
const localSignIn = z.string().transform((text, context) => {
  const [token = '', ...names] = text.split(',')
  const members = names.flatMap((name) => {
    const [, organizationId, userId] = MEMBER.exec(name) ?? []
    return organizationId !== undefined && userId !== undefined ? [{ organizationId, userId }] : []
  })
  if (token.length < 32 || members.length === 0 || members.length < names.length) {
    context.addIssue({
      code: 'custom',
      message: 'must be a token of 32 characters and organization/user pairs',
    })
    return z.NEVER
  }
  return { token, members }
})

const optional = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess((value) => (value === '' ? undefined : value), schema.optional())

/**
 * Every variable and secret of the Worker. `docs/configuration.md` and `.env.example` have the same list; a test compares
 * the three.
 */
const variables = z.object({
  BASE_URL: optional(origin),
  LLM_HOST: hostList,
  CORS_ORIGINS: originList,
  DATABASE_URL: z.string().regex(/^postgres(ql)?:\/\//, 'must be a postgres:// connection string'),
  DATABASE_FETCH_ENDPOINT: optional(z.url()),
  UPSTASH_REDIS_REST_URL: origin,
  UPSTASH_REDIS_REST_TOKEN: z.string().min(1),
  QSTASH_URL: optional(origin),
  QSTASH_TOKEN: optional(z.string()),
  QSTASH_CURRENT_SIGNING_KEY: optional(z.string()),
  QSTASH_NEXT_SIGNING_KEY: optional(z.string()),
  // The QStash receiver would accept published signing keys under this variable, however it was set.
  QSTASH_DEV: z
    .undefined({ error: 'is refused: it makes the receiver accept published signing keys' })
    .optional(),
  ADMIN_TOKEN: optional(secret),
  LOCAL_SIGN_IN: optional(localSignIn),
  KEY_PEPPERS: keyRing,
  VAULT_KEYS: keyRing,
  EGRESS_ALLOW: hostList,
  WEB_EGRESS_ALLOW: hostList,
  SEARCH_PROVIDER: z.enum(['local', 'brave', 'tavily', 'searxng']).default('local'),
  SEARCH_API_KEY: optional(z.string()),
  SEARCH_URL: optional(address),
  SEARCH_PRICE: wholeNumber(0, 0),
  NANGO_SECRET_KEY: optional(secret),
  NANGO_URL: address.default('https://api.nango.dev'),
  NATIVE_STREAM_HOSTS: hosts(VENDOR_HOSTS.join(',')),
  ORGANIZATION_RATE_LIMIT: wholeNumber(6000),
  USER_RATE_LIMIT: wholeNumber(600),
  MANAGEMENT_RATE_LIMIT: wholeNumber(600),
  DEGRADED_RATE_LIMIT: wholeNumber(60),
  LIMITS_TIMEOUT_MS: wholeNumber(300),
  BUFFER_LIMIT_BYTES: wholeNumber(64 * 1024 * 1024),
  BODY_GRACE_MS: wholeNumber(60_000),
  BODY_LEAST_BYTES_PER_SECOND: wholeNumber(64 * 1024),
  UPSTREAM_CONNECT_TIMEOUT_MS: wholeNumber(10_000),
  UPSTREAM_HEADERS_TIMEOUT_MS: wholeNumber(60_000),
  UPSTREAM_FIRST_EVENT_TIMEOUT_MS: wholeNumber(300_000),
  UPSTREAM_EVENT_TIMEOUT_MS: wholeNumber(120_000),
  UPSTREAM_ANSWER_TIMEOUT_MS: wholeNumber(600_000),
  UPSTREAM_RETRY_WAIT_MS: wholeNumber(2_000, 0),
  UPSTREAM_READ_ON_MS: wholeNumber(25_000, 0),
  STREAM_COMMIT_MS: wholeNumber(15_000),
  STREAM_HEARTBEAT_MS: wholeNumber(15_000),
  RESPONSE_OBJECTS: z.enum(['shared', 'own']).default('shared'),
  RESPONSE_COMMIT_MS: wholeNumber(1_000, 0),
  RESPONSE_WINDOW_MS: wholeNumber(15 * 60_000),
  RESPONSE_MAX_TURNS: wholeNumber(50),
  RESPONSE_TIME_LIMIT_MS: wholeNumber(3_600_000),
  RUN_DELIVERY_MS: wholeNumber(120_000).pipe(z.number().max(600_000)),
  STORE_FULL_ADDRESSES: z
    .enum(['true', 'false'])
    .default('false')
    .transform((text) => text === 'true'),
  AUDIT_RETENTION_DAYS: wholeNumber(0, 0),
  USAGE_RETENTION_DAYS: wholeNumber(0, 0),
  RESPONSE_RETENTION_DAYS: wholeNumber(0, 0),
  RUN_RETENTION_DAYS: wholeNumber(90, 0),
  CONNECT_SESSION_RETENTION_DAYS: wholeNumber(30, 0),
  REJECTED_CALL_RETENTION_DAYS: wholeNumber(90, 0),
  SOCKET_USER_LIMIT: wholeNumber(50),
  SOCKET_TIME_LIMIT_MS: wholeNumber(LONGEST_CONNECTION_MS).pipe(z.number().max(LONGEST_CONNECTION_MS)),
  INTEGRATION_LIST_TIMEOUT_MS: wholeNumber(10_000),
  LEDGER_LEASE_MS: wholeNumber(120_000),
  LEDGER_FLUSH_MS: wholeNumber(1_000),
  IDENTITY_CACHE_MS: wholeNumber(30_000).pipe(z.number().max(30_000)),
})

/** Every variable, and what they need of each other. */
export const configurationSchema = variables.superRefine(
  (
    { SEARCH_PROVIDER: provider, SEARCH_API_KEY: key, SEARCH_URL: url, LOCAL_SIGN_IN, BASE_URL = '' },
    context,
  ) => {
    if (LOCAL_SIGN_IN && !isLocalAddress(BASE_URL)) {
      const message = 'is refused: BASE_URL is not http on loopback'
      context.addIssue({ code: 'custom', path: ['LOCAL_SIGN_IN'], message })
    }
    if (provider === 'local') return
    const missing = provider === 'searxng' ? !url && 'SEARCH_URL' : !key && 'SEARCH_API_KEY'
    if (!missing) return
    const message = `is not set, and the search provider ${provider} needs it`
    context.addIssue({ code: 'custom', path: [missing], message })
  },
)

export type Configuration = z.infer<typeof configurationSchema>

/** The bindings of wrangler.toml. */
export interface Bindings extends Record<string, unknown> {
  LEDGER: DurableObjectNamespace
  RESPONSE_STREAMS: DurableObjectNamespace
  RESPONSE_POOLS: DurableObjectNamespace
  RESPONSE_SOCKETS: DurableObjectNamespace
  CONNECTION_CREDENTIALS: DurableObjectNamespace
  CONTENT: R2Bucket
  /**
   * Only in a self-hosted runtime: a network that connects to public addresses only, for pages (docs/deployment.md).
   */
  PUBLIC_WEB?: Fetcher
  /** Browser Run, for screenshots. */
  BROWSER?: BrowserRun
  /** The script of tools. */
  TOOLS: Fetcher
  /** The version of the script that runs; only on Cloudflare. */
  VERSION?: WorkerVersionMetadata
  /** Static files of the folder `public`. */
  ASSETS?: Fetcher
}

/** Variables that are missing or invalid. The message has names and reasons, never a value. */
export class ConfigurationError extends Error {
  constructor(issues: string[]) {
    super(`Invalid configuration: ${issues.join('; ')}`)
    this.name = 'ConfigurationError'
  }
}

/** @throws ConfigurationError naming every variable that does not fit. */
export function parseConfiguration(environment: Record<string, unknown>): Configuration {
  const parsed = configurationSchema.safeParse(environment)
  if (parsed.success) return parsed.data
  throw new ConfigurationError(
    parsed.error.issues.map((issue) => {
      const missing = issue.code === 'invalid_type' && environment[String(issue.path[0])] === undefined
      return `${String(issue.path[0])} ${missing ? 'is not set' : issue.message}`
    }),
  )
}
