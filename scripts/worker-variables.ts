import { configurationSchema, parseConfiguration } from '../src/env.ts'
import type { LocalSecrets } from './local-secrets.ts'

/** Addresses of the stand-ins; null for one whose real counterpart is configured. */
export interface LocalServices {
  baseUrl: string
  /** `http://127.0.0.1:<port>` of each stand-in. */
  postgres: string | null
  redis: string | null
  qstash: string | null
  modelUpstream: string | null
  /** The upstreams of the demo integrations. */
  integrations?: string
}

/** Host that the forwarder on PORT + 1 sets; the default of LLM_HOST. */
export const DEFAULT_LLM_HOST = 'llm.headgate.localhost'

/** Names of every variable that the Worker reads. */
export const workerVariableNames: readonly string[] = Object.keys(configurationSchema.shape)

/**
 * The Worker's variables for a local system: what the environment sets, over the values of the stand-ins and
 * the local secrets. The result is checked as the Worker would check it.
 *
 * @throws ConfigurationError naming each variable that is missing or wrong
 */
export function workerVariables(
  environment: NodeJS.ProcessEnv,
  secrets: LocalSecrets,
  services: LocalServices,
): Record<string, string> {
  const given = Object.fromEntries(
    workerVariableNames.flatMap((name) => {
      const value = environment[name]
      return value === undefined || value === '' ? [] : [[name, value]]
    }),
  )
  const variables: Record<string, string> = {
    ADMIN_TOKEN: secrets.adminToken,
    KEY_PEPPERS: secrets.keyPeppers,
    VAULT_KEYS: secrets.vaultKeys,
    BASE_URL: services.baseUrl,
    LLM_HOST: DEFAULT_LLM_HOST,
    ...standInVariables(secrets, services),
    ...given,
    EGRESS_ALLOW: egressAllow(environment, services),
    ...nativeStreamHosts(environment, services.modelUpstream),
  }
  parseConfiguration(variables)
  return variables
}

function standInVariables(secrets: LocalSecrets, services: LocalServices): Record<string, string> {
  const { postgres, redis, qstash } = services
  return {
    ...(postgres !== null && {
      // Any user and password are accepted: the stand-in has one database and is bound to loopback.
      DATABASE_URL: `postgres://headgate:local@${new URL(postgres).host}/headgate`,
      DATABASE_FETCH_ENDPOINT: `${postgres}/sql`,
    }),
    ...(redis !== null && {
      UPSTASH_REDIS_REST_URL: redis,
      UPSTASH_REDIS_REST_TOKEN: secrets.redisToken,
    }),
    ...(qstash !== null && {
      QSTASH_URL: qstash,
      QSTASH_TOKEN: secrets.qstashToken,
      QSTASH_CURRENT_SIGNING_KEY: secrets.qstashCurrentSigningKey,
      QSTASH_NEXT_SIGNING_KEY: secrets.qstashNextSigningKey,
    }),
  }
}

/** Hosts that the guarded fetch must allow: the scripted upstream, and services of the environment on loopback. */
function egressAllow(environment: NodeJS.ProcessEnv, { modelUpstream, integrations }: LocalServices): string {
  const urls = [
    modelUpstream,
    integrations,
    environment.OPENAI_BASE_URL,
    environment.ANTHROPIC_BASE_URL,
    environment.SEARCH_URL,
    environment.NANGO_URL,
  ]
  const hosts = urls.flatMap((url) => (url ? loopbackHost(url) : []))
  const given = (environment.EGRESS_ALLOW ?? '').split(',').map((part) => part.trim())
  return [...new Set([...given, ...hosts])].filter((part) => part !== '').join(',')
}

/** The scripted provider's streams pass natively, as those of a vendor do. */
function nativeStreamHosts(environment: NodeJS.ProcessEnv, modelUpstream: string | null) {
  if (environment.NATIVE_STREAM_HOSTS || modelUpstream === null) return {}
  const vendors = configurationSchema.shape.NATIVE_STREAM_HOSTS.parse(undefined)
  return { NATIVE_STREAM_HOSTS: [...vendors, new URL(modelUpstream).hostname].join(',') }
}

function loopbackHost(text: string): string[] {
  if (!URL.canParse(text)) return []
  const url = new URL(text)
  if (!/^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname)) return []
  return [`${url.hostname}:${url.port || (url.protocol === 'https:' ? '443' : '80')}`]
}
