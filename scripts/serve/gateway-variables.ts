import { randomBytes } from 'node:crypto'
import { configurationSchema, parseConfiguration } from '../../src/env.ts'
import type { ServicePorts } from './services-process.ts'
import type { NodeSettings } from './settings.ts'

/** Variables of the Worker that this service sets to its own parts. */
const OWN_VARIABLES = [
  'DATABASE_FETCH_ENDPOINT',
  'UPSTASH_REDIS_REST_URL',
  'UPSTASH_REDIS_REST_TOKEN',
  'QSTASH_URL',
  'QSTASH_TOKEN',
  'QSTASH_CURRENT_SIGNING_KEY',
  'QSTASH_NEXT_SIGNING_KEY',
]
/** Variables for development. */
const REFUSED_VARIABLES = ['LOCAL_SIGN_IN', 'QSTASH_DEV']

/** Variables by their names; one that is empty is left out. */
type Given = Record<string, string | undefined>

/** Tokens of the parts of a node among each other. */
export interface NodeTokens {
  sqlPassword: string
  redis: string
  queue: string
  currentSigningKey: string
  nextSigningKey: string
}

/** New ones for each start. */
export function newTokens(): NodeTokens {
  const token = () => randomBytes(32).toString('base64url')
  return {
    sqlPassword: token(),
    redis: token(),
    queue: token(),
    currentSigningKey: token(),
    nextSigningKey: token(),
  }
}

/** All variables of the Worker, with the addresses of the parts of a node. */
export function gatewayVariables(
  { variables, baseUrl }: NodeSettings,
  { postgres, redis, queue }: ServicePorts,
  tokens: NodeTokens,
): Record<string, string> {
  return {
    ...variables,
    BASE_URL: baseUrl,
    // The endpoint is a variable of its own, so that the host is no more than a name.
    DATABASE_URL: `postgres://headgate:${tokens.sqlPassword}@node.localhost/headgate`,
    DATABASE_FETCH_ENDPOINT: `http://127.0.0.1:${postgres}/sql`,
    UPSTASH_REDIS_REST_URL: `http://127.0.0.1:${redis}`,
    UPSTASH_REDIS_REST_TOKEN: tokens.redis,
    QSTASH_URL: `http://127.0.0.1:${queue}`,
    QSTASH_TOKEN: tokens.queue,
    QSTASH_CURRENT_SIGNING_KEY: tokens.currentSigningKey,
    QSTASH_NEXT_SIGNING_KEY: tokens.nextSigningKey,
  }
}

/** @returns a line for each variable that may not be set */
export const refusedVariables = (given: Given): string[] =>
  [...OWN_VARIABLES, ...REFUSED_VARIABLES]
    .filter((name) => given[name] !== undefined)
    .map((name) => `${name} is not for npm run serve; remove it`)

/** What the Worker itself finds wrong, as far as it is not stated already. */
export function workerProblems(given: Given, stated: readonly string[]): string[] {
  const named = new Set(stated.map((problem) => problem.split(' ', 1)[0]))
  try {
    // The addresses of this node's own parts are known later.
    const own = {
      DATABASE_URL: 'postgres://x',
      UPSTASH_REDIS_REST_URL: 'http://x',
      UPSTASH_REDIS_REST_TOKEN: 'x',
    }
    parseConfiguration({ ...workerVariables(given), ...own })
    return []
  } catch (error) {
    const problems = (error as Error).message.replace('Invalid configuration: ', '').split('; ')
    return problems.filter((problem) => !named.has(problem.split(' ', 1)[0]))
  }
}

/** The variables of the Worker that are set and do not depend on the ports of this node's parts. */
export function workerVariables(given: Given): Record<string, string> {
  const left = [...OWN_VARIABLES, ...REFUSED_VARIABLES, 'DATABASE_URL']
  const names = Object.keys(configurationSchema.shape).filter((name) => !left.includes(name))
  return Object.fromEntries(names.flatMap((name) => (given[name] === undefined ? [] : [[name, given[name]]])))
}
