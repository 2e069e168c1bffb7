import { TOOLS_VERSION_HEADER } from '../../src/workspace/contract.ts'
import type { DeployClock } from './deploy-clock.ts'

export interface SmokeTestOptions {
  /** Of the gateway, without a path. */
  origin: string
  /** Name of its script and the version that must answer. */
  version: { script: string; id: string }
  /** Version of the script of tools that the gateway must reach; null if it is not known. */
  toolsVersion: string | null
  adminToken: string | undefined
  /** Where that is from: of a message. */
  adminTokenPlace: string
  /** Key of a caller. */
  key: string | undefined
  model: string | undefined
  /** Whether Postgres has the audit record of a request. May reject. */
  hasRecord: (requestId: string) => Promise<boolean>
  /** How long the version may take to answer: a new host gets its certificate first. */
  patienceMs: number
  fetch: typeof fetch
  clock: DeployClock
}

interface Answer {
  status: number
  headers: Headers
  text: string
}

export const VERSION_HEADER = 'x-headgate-version'

/** Cloudflare: "a couple of seconds". https://developers.cloudflare.com/workers/versions-and-deployments/version-overrides/ */
const POLL_MS = 2_000
/** The gateway keeps its result for five seconds. */
const READY_POLL_MS = 6_000
const SERVICES_PATIENCE_MS = 30_000
const RECORD_PATIENCE_MS = 30_000
const REQUEST_LIMIT_MS = 60_000

/**
 * Calls a version of the gateway, also one without traffic: an override of Cloudflare selects it. An override that is not
 * applied would test the version before, so the answer has to name its version.
 *
 * @returns what failed; nothing if the version works
 */
export async function runSmokeTest(options: SmokeTestOptions): Promise<string[]> {
  const unreachable = await awaitVersion(options)
  if (unreachable !== null) return [unreachable]
  const problems = [await checkServices(options), await checkRefusal(options), await checkManagement(options)]
  if (options.key !== undefined) problems.push(await checkModels(options), await checkModelCall(options))
  return problems.filter((problem) => problem !== null)
}

async function awaitVersion(options: SmokeTestOptions): Promise<string | null> {
  const { clock, patienceMs, version } = options
  const end = clock.now() + patienceMs
  for (;;) {
    const answer = await call(options, '/health')
    const answering = answer?.headers.get(VERSION_HEADER) ?? null
    const isWanted = answering === version.id
    if (answer?.status === 200 && isWanted) return null
    if (clock.now() >= end)
      return `/health ${describe(answer)}${isWanted || answer?.status !== 200 ? '' : otherVersion(answering)}`
    await clock.sleep(POLL_MS)
  }
}

const otherVersion = (id: string | null): string =>
  id === null ? ', and the answer names no version' : `, but by version ${id}`

/** Postgres, Redis, the ledger, R2 and the script of tools, as the version reaches them. A first connection may take longer than the check waits. */
async function checkServices(options: SmokeTestOptions): Promise<string | null> {
  const { clock } = options
  const end = clock.now() + SERVICES_PATIENCE_MS
  for (;;) {
    const answer = await call(options, '/health/ready')
    const failure = servicesFailure(answer, options.toolsVersion)
    if (failure === null || clock.now() >= end) return failure
    await clock.sleep(READY_POLL_MS)
  }
}

/** @returns why the answer of /health/ready is not the wanted one; null if it is */
function servicesFailure(answer: Answer | null, toolsVersion: string | null): string | null {
  if (answer?.status !== 200) return `/health/ready ${describe(answer)}${failedServices(answer)}`
  if (/"degraded":\["tools"\]/.test(answer.text)) return '/health/ready: no answer from the script of tools'
  const answering = answer.headers.get(TOOLS_VERSION_HEADER)
  if (toolsVersion === null || answering === toolsVersion) return null
  return answering === null
    ? '/health/ready names no version of the script of tools'
    : `/health/ready reached version ${answering} of the script of tools instead of ${toolsVersion}`
}

/** The parts that the gateway names. Anything else that answers 503 has no such list. */
function failedServices(answer: Answer | null): string {
  const failed = answer?.status === 503 ? /"failed":\[([a-z",]+)\]/.exec(answer.text)?.[1] : undefined
  return failed === undefined ? '' : `: no answer from ${failed.replaceAll('"', '').replaceAll(',', ', ')}`
}

/** A key that does not exist is looked up in the ledger's and Postgres' data, with the peppers. */
async function checkRefusal(options: SmokeTestOptions): Promise<string | null> {
  const answer = await call(options, '/v1/models', { authorization: 'Bearer hg_smoke_test_without_rights' })
  return answer?.status === 401 ? null : `/v1/models with a wrong key ${describe(answer)} instead of 401`
}

async function checkManagement(options: SmokeTestOptions): Promise<string | null> {
  if (options.adminToken === undefined) return null
  const answer = await call(options, '/api/organizations', { authorization: `Bearer ${options.adminToken}` })
  if (answer?.status === 200) return null
  const cause =
    answer?.status === 401 ? `: ADMIN_TOKEN of ${options.adminTokenPlace} is not that of the script` : ''
  return `/api/organizations ${describe(answer)}${cause}`
}

async function checkModels(options: SmokeTestOptions): Promise<string | null> {
  const answer = await call(options, '/v1/models', { authorization: `Bearer ${options.key}` })
  return answer?.status === 200 ? null : `/v1/models ${describe(answer)}`
}

/** One call as a caller makes it, and its record, which the ledger writes to Postgres. */
async function checkModelCall(options: SmokeTestOptions): Promise<string | null> {
  const { model, key, clock, hasRecord } = options
  if (model === undefined) return null
  const body = { model, max_tokens: 16, messages: [{ role: 'user', content: 'Say OK.' }] }
  const answer = await call(options, '/v1/chat/completions', { authorization: `Bearer ${key}` }, body)
  if (answer?.status !== 200) return `a call of ${model} ${describe(answer)}`
  const requestId = answer.headers.get('x-request-id') ?? ''
  const end = clock.now() + RECORD_PATIENCE_MS
  for (;;) {
    // A connection that fails is repeated too: an error would leave the version with its traffic.
    const isThere = await hasRecord(requestId).catch(() => null)
    if (isThere) return null
    if (clock.now() >= end)
      return isThere === null
        ? `the audit record of request ${requestId} cannot be read: Postgres does not answer`
        : `the audit record of request ${requestId} is not in Postgres`
    await clock.sleep(POLL_MS)
  }
}

/** @returns the answer, its body read; null without one */
async function call(
  options: SmokeTestOptions,
  path: string,
  headers: Record<string, string> = {},
  body?: unknown,
): Promise<Answer | null> {
  const { origin, version } = options
  try {
    const response = await options.fetch(origin + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        ...headers,
        'cloudflare-workers-version-overrides': `${version.script}="${version.id}"`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      redirect: 'manual',
      signal: AbortSignal.timeout(REQUEST_LIMIT_MS),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  } catch {
    return null
  }
}

const describe = (answer: Answer | null): string =>
  answer === null ? 'has no answer' : `was answered ${answer.status}`
