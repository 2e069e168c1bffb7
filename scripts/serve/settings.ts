import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { isAbsolute, resolve } from 'node:path'
import type { PoolConfig } from 'pg'
import * as z from 'zod'
import { isLocalAddress } from '../../src/env.ts'
import { DOT_SEGMENT, type S3Bucket } from '../node/content-store/s3-objects.ts'
import { readRanges } from './client-address.ts'
import { databaseConnection } from './database-connection.ts'
import { refusedVariables, workerProblems, workerVariables } from './gateway-variables.ts'

/** Where content over 1 MB is stored. */
export type ContentPlace = { folder: string } | S3Bucket

/** Variables that may be given as the name of a file that holds the value, as `ADMIN_TOKEN_FILE`. */
const FROM_FILES = [
  'DATABASE_URL',
  'REDIS_URL',
  'ADMIN_TOKEN',
  'KEY_PEPPERS',
  'VAULT_KEYS',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'SEARCH_API_KEY',
  'NANGO_SECRET_KEY',
]

/** Different characters or bytes below which a secret was not made by a random source. */
const LEAST_DIFFERENT = 12
const ADMIN_TOKEN_LENGTH = 32
/** The path of a Unix socket has at most 104 bytes on macOS, and 108 on Linux. */
const LONGEST_FOLDER = 80

/** A check that throws the reason. */
const checked = <Value>(read: (text: string) => Value) =>
  z.string().transform((text, context): Value => {
    try {
      return read(text)
    } catch (error) {
      context.addIssue({ code: 'custom', message: (error as Error).message })
      return z.NEVER
    }
  })

const integer = (fallback: number, least: number, most: number) =>
  z.coerce.number().int().min(least).max(most).default(fallback)

const redisUrl = checked((text) => {
  if (!URL.canParse(text) || !/^rediss?:$/.test(new URL(text).protocol))
    throw new Error('must be a redis:// or rediss:// URL')
  return text
})

const adminToken = checked((text) => {
  if (text.length < ADMIN_TOKEN_LENGTH || new Set(text).size < LEAST_DIFFERENT)
    throw new Error(`is weak: make ${ADMIN_TOKEN_LENGTH} random characters or more`)
  return text
})

/** Pairs of `id:base64`, whose form the Worker's schema checks. */
const randomKeys = checked((text) => {
  for (const part of text.split(',')) {
    const key = Buffer.from(part.trim().split(':')[1] ?? '', 'base64')
    if (key.length === 32 && new Set(key).size < LEAST_DIFFERENT)
      throw new Error('is weak: make each key of 32 random bytes')
  }
  return text
})

const baseUrl = checked((text) => {
  const isSecure = URL.canParse(text) && new URL(text).protocol === 'https:'
  if (!isSecure && !isLocalAddress(text)) throw new Error('must be an https:// origin, or http on loopback')
  return text
})

const addressRanges = checked((text) => {
  readRanges(text)
  return text
})

const folder = checked((text) => {
  if (!isAbsolute(text)) throw new Error('must be an absolute path')
  if (Buffer.byteLength(resolve(text)) > LONGEST_FOLDER)
    throw new Error(`must not be longer than ${LONGEST_FOLDER} bytes: it has Unix sockets`)
  return resolve(text)
})

const CONTENT =
  /^(?:(?<folder>\/.*)|s3:\/\/(?<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(?<prefix>[\w./-]*))?)$/

const node = z.object({
  DATABASE_URL: checked(databaseConnection),
  DATABASE_POOL_SIZE: integer(20, 1, 1_000),
  REDIS_URL: redisUrl,
  CONTENT: z
    .string()
    .regex(CONTENT, 'must be the path of a folder, or s3://bucket/prefix')
    .refine((text) => text.startsWith('/') || !DOT_SEGMENT.test(text), 'must have no . or .. in its prefix'),
  S3_ENDPOINT: z.url({ protocol: /^https?$/ }).optional(),
  AWS_REGION: z.string().min(1).optional(),
  AWS_ACCESS_KEY_ID: z.string().min(1).optional(),
  AWS_SECRET_ACCESS_KEY: z.string().min(1).optional(),
  AWS_SESSION_TOKEN: z.string().min(1).optional(),
  HOST: z.string().min(1).default('127.0.0.1'),
  PORT: integer(8787, 0, 65_535),
  BASE_URL: baseUrl,
  DATA_DIR: folder,
  TRUSTED_PROXIES: z.string().default('').pipe(addressRanges),
  STOP_TIMEOUT: integer(30, 0, 3_600),
  MIGRATE: z.enum(['on', 'off']).default('on'),
  TOOLS_URL: z.url({ protocol: /^http$/ }).optional(),
  TOOLS_MEMORY_MB: integer(512, 64, 65_536),
  ADMIN_TOKEN: adminToken,
  KEY_PEPPERS: randomKeys,
  VAULT_KEYS: randomKeys,
})

const tools = node.pick({ DATA_DIR: true, TOOLS_MEMORY_MB: true }).extend({
  HOST: node.shape.HOST,
  TOOLS_PORT: integer(8788, 1, 65_535),
})

export interface NodeSettings {
  database: PoolConfig
  poolSize: number
  redisUrl: string
  content: ContentPlace
  host: string
  port: number
  baseUrl: string
  dataFolder: string
  /** As the variable has it. */
  trustedProxies: string
  /** Milliseconds for which a stop waits for streams. */
  stopLimitMs: number
  migrates: boolean
  /** Address of a script of tools that runs elsewhere, as workerd takes it; null to run it here. */
  toolsAddress: string | null
  toolsMemoryBytes: number
  /** The Worker's variables that do not depend on the ports of this node's parts. */
  variables: Record<string, string>
}

export interface ToolsSettings {
  dataFolder: string
  host: string
  port: number
  toolsMemoryBytes: number
}

/** Settings that are missing or weak, one line each; never a value. */
export class SettingsError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(`these settings are missing or wrong: ${problems.join('; ')}`)
    this.problems = problems
  }
}

/** Reads the settings of a node. @throws SettingsError naming every variable that is missing, weak or wrong */
export function readNodeSettings(environment: NodeJS.ProcessEnv): NodeSettings {
  const { given, problems } = withFiles(environment)
  problems.push(...refusedVariables(given))
  const parsed = node.safeParse(given)
  if (!parsed.success) problems.push(...problemsOf(parsed.error, given))
  problems.push(...contentProblems(given), ...workerProblems(given, problems), ...sharedKeyProblems(given))
  if (!parsed.success || problems.length > 0) throw new SettingsError([...new Set(problems)])
  const settings = parsed.data
  return {
    database: settings.DATABASE_URL,
    poolSize: settings.DATABASE_POOL_SIZE,
    redisUrl: settings.REDIS_URL,
    content: contentPlace(settings),
    host: settings.HOST,
    port: settings.PORT,
    baseUrl: settings.BASE_URL,
    dataFolder: settings.DATA_DIR,
    trustedProxies: settings.TRUSTED_PROXIES,
    stopLimitMs: settings.STOP_TIMEOUT * 1_000,
    migrates: settings.MIGRATE === 'on',
    toolsAddress: settings.TOOLS_URL === undefined ? null : new URL(settings.TOOLS_URL).host,
    toolsMemoryBytes: settings.TOOLS_MEMORY_MB * 1024 * 1024,
    variables: workerVariables(given),
  }
}

/** Reads the settings of a process that runs the script of tools alone. @throws SettingsError */
export function readToolsSettings(environment: NodeJS.ProcessEnv): ToolsSettings {
  const { given, problems } = withFiles(environment)
  const parsed = tools.safeParse(given)
  if (!parsed.success) problems.push(...problemsOf(parsed.error, given))
  if (!parsed.success || problems.length > 0) throw new SettingsError(problems)
  const { DATA_DIR, HOST, TOOLS_PORT, TOOLS_MEMORY_MB } = parsed.data
  return {
    dataFolder: DATA_DIR,
    host: HOST,
    port: TOOLS_PORT,
    toolsMemoryBytes: TOOLS_MEMORY_MB * 1024 * 1024,
  }
}

/**
 * Digests of the keys of a ring by their ids, from which a key of 32 random bytes cannot be found.
 * @param ring KEY_PEPPERS or VAULT_KEYS
 */
export function fingerprints(ring: string): Record<string, string> {
  const pairs = ring.split(',').map((part) => part.trim().split(':'))
  return Object.fromEntries(
    pairs.map(([id = '', key = '']) => [
      id,
      createHash('sha256')
        .update('headgate key fingerprint\0')
        .update(Buffer.from(key, 'base64'))
        .digest('hex')
        .slice(0, 32),
    ]),
  )
}

/** The set variables, with those that are in files. An empty value counts as not set. */
function withFiles(environment: NodeJS.ProcessEnv) {
  const given: Record<string, string | undefined> = {}
  const problems: string[] = []
  for (const [name, value] of Object.entries(environment)) if (value) given[name] = value
  for (const name of FROM_FILES) {
    const path = given[`${name}_FILE`]
    if (path === undefined) continue
    try {
      given[name] = readFileSync(path, 'utf8').trim()
    } catch {
      problems.push(`${name}_FILE names a file that cannot be read`)
    }
  }
  return { given, problems }
}

function problemsOf(error: z.ZodError, given: Record<string, string | undefined>): string[] {
  return error.issues.map(({ path, message }) => {
    const name = String(path[0])
    return given[name] === undefined ? `${name} is not set` : `${name} ${message}`
  })
}

/** One key for two purposes: who learns a pepper would open the vault. */
function sharedKeyProblems(given: Record<string, string | undefined>): string[] {
  const { KEY_PEPPERS: peppers, VAULT_KEYS: keys } = given
  if (peppers === undefined || keys === undefined) return []
  const vault = new Set(Object.values(fingerprints(keys)))
  return Object.values(fingerprints(peppers)).some((print) => vault.has(print))
    ? ['VAULT_KEYS has a key of KEY_PEPPERS']
    : []
}

function contentProblems(given: Record<string, string | undefined>): string[] {
  if (!given.CONTENT?.startsWith('s3:')) return []
  const needed = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', ...(given.S3_ENDPOINT ? [] : ['AWS_REGION'])]
  return needed
    .filter((name) => given[name] === undefined)
    .map((name) => `${name} is not set, and CONTENT in S3 needs it`)
}

function contentPlace(settings: z.infer<typeof node>): ContentPlace {
  const { folder: path, bucket = '', prefix = '' } = CONTENT.exec(settings.CONTENT)?.groups ?? {}
  if (path !== undefined) return { folder: resolve(path) }
  return {
    bucket,
    prefix: prefix === '' || prefix.endsWith('/') ? prefix : `${prefix}/`,
    endpoint: settings.S3_ENDPOINT === undefined ? null : new URL(settings.S3_ENDPOINT).origin,
    region: settings.AWS_REGION ?? 'us-east-1',
    accessKeyId: settings.AWS_ACCESS_KEY_ID ?? '',
    secretAccessKey: settings.AWS_SECRET_ACCESS_KEY ?? '',
    sessionToken: settings.AWS_SESSION_TOKEN ?? null,
  }
}
