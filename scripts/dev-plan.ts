import { join } from 'node:path'
import { needsScriptedUpstream } from './demo-catalogue.ts'
import type { StackPlan } from './local/stack.ts'
import type { LocalSecrets } from './local-secrets.ts'
import { StartError } from './node/start-error.ts'

export const DEFAULT_PORT = 8787

/**
 * The port of the gateway; the LLM host gets the next one.
 *
 * @throws StartError if PORT is no port that has a next one
 */
export function readPort(environment: NodeJS.ProcessEnv): number {
  const text = environment.PORT || String(DEFAULT_PORT)
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port < 1 || port > 65_534) {
    throw new StartError(`PORT takes a number from 1 to 65534, since the LLM host gets the next one`)
  }
  return port
}

/**
 * Decides which stand-ins start: one for each service that the environment does not name.
 *
 * @param folder folder of the local system's data
 * @throws StartError for a service that is named incompletely, such as a URL without its token
 */
export function stackPlan(environment: NodeJS.ProcessEnv, secrets: LocalSecrets, folder: string): StackPlan {
  const postgres = postgresPlan(environment, folder)
  const realRedis = allOrNone(environment, ['UPSTASH_REDIS_REST_URL', 'UPSTASH_REDIS_REST_TOKEN'])
  const realQstash = allOrNone(
    environment,
    ['QSTASH_TOKEN', 'QSTASH_CURRENT_SIGNING_KEY', 'QSTASH_NEXT_SIGNING_KEY'],
    ['QSTASH_URL'],
  )
  return {
    ...(postgres && { postgres }),
    ...(!realRedis && { redis: { token: secrets.redisToken, file: join(folder, 'redis.jsonl') } }),
    ...(!realQstash && {
      qstash: {
        token: secrets.qstashToken,
        currentSigningKey: secrets.qstashCurrentSigningKey,
        nextSigningKey: secrets.qstashNextSigningKey,
        file: join(folder, 'qstash.jsonl'),
      },
    }),
    ...(needsScriptedUpstream(environment) && { modelUpstream: { record: true } }),
    contentStore: { folder: join(folder, 'content') },
    control: false,
  }
}

/** Neon offers SQL over HTTP; any other PostgreSQL needs the stand-in in front of it. */
function postgresPlan(environment: NodeJS.ProcessEnv, folder: string): StackPlan['postgres'] | null {
  const url = environment.DATABASE_URL
  if (!url) return { folder: join(folder, 'postgres') }
  if (environment.DATABASE_FETCH_ENDPOINT) return null
  if (!URL.canParse(url)) throw new StartError('DATABASE_URL must be a postgres:// connection string')
  return new URL(url).hostname.endsWith('.neon.tech') ? null : { url }
}

/** @returns whether all of the names are set; the optional ones alone are as wrong as one name alone */
function allOrNone(environment: NodeJS.ProcessEnv, names: string[], optional: string[] = []): boolean {
  const set = [...names, ...optional].filter((name) => environment[name])
  const missing = names.filter((name) => !environment[name])
  if (set.length > 0 && missing.length > 0) {
    throw new StartError(`${missing.join(' and ')} must be set together with ${set.join(' and ')}`)
  }
  return set.length > 0
}
