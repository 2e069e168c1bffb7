import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeEach, expect, vi } from 'vitest'
import { apiKeys, memberships, organizations, users } from '../../schema/identity.ts'
import { grants, modelRoutes, models, providers } from '../../schema/models.ts'
import type { CallIdentity } from '../../src/calls/governed-call.ts'
import { configurationOf, createDatabase } from '../../src/deps.ts'
import { keyIdOf, type Principal } from '../../src/identity/principal.ts'
import { seal } from '../../src/lib/crypto.ts'
import { newId } from '../../src/lib/ids.ts'
import { StoredEvents } from '../../src/responses/log/stored-events.ts'
import { UnflushedEvents } from '../../src/responses/log/unflushed-events.ts'
import { newResponseId, placeOf, type ResponsePlace } from '../../src/responses/model/response-ids.ts'
import type { ResponseMethods, StartRequest } from '../../src/responses/model/types.ts'
import { lonePlace } from '../../src/responses/pool/places.ts'
import { responseObjectClient } from '../../src/responses/pool/pool-client.ts'
import { poolName } from '../../src/responses/pool/slots.ts'
import { CommitRows, type Frames } from '../../src/responses/storage/commit-rows.ts'
import { KEYS_PER_RESPONSE, type Slice, wholeStorage } from '../../src/responses/storage/slice.ts'
import { StoredValues } from '../../src/responses/store/stored-values.ts'
import { checkResponseStream } from '../harness/conformance.ts'
import { readResponseStream } from '../harness/response-stream-text.ts'
import { DEFAULT_TOOL_RIGHTS } from '../harness/tool-rights.ts'
import { creditSum, expectIntactChain, newOrganization, type Organization } from './ledger-harness.ts'
import { MODEL_URL, type ModelRequest } from './scripted-model.ts'
import { type ToolRun, toolRuns } from './tool-response-stream.ts'

/** Before any test puts a gate in front of Postgres: what a test looks up is not held by it. */
const realFetch = globalThis.fetch

export async function query(text: string, ...parameters: unknown[]): Promise<Array<Record<string, unknown>>> {
  const response = await realFetch(String(env.DATABASE_FETCH_ENDPOINT), {
    method: 'POST',
    headers: { 'neon-connection-string': String(env.DATABASE_URL) },
    body: JSON.stringify({ query: text, params: parameters }),
  })
  const answer = (await response.json()) as { rows: Array<Record<string, unknown>> }
  if (!response.ok) throw new Error(`${text}: ${JSON.stringify(answer)}`)
  return answer.rows
}

const configuration = configurationOf(env)
const database = createDatabase(configuration)
export const MODEL = 'live-model'
export const CREDITS = 1_000_000_000

/** One model, which the scripted model serves. */
export async function seedModel(): Promise<void> {
  const id = crypto.randomUUID()
  const prices = {
    input: 1_000_000,
    output: 1_000_000,
    cacheRead: 0,
    cacheWrite5Minutes: 0,
    cacheWrite1Hour: 0,
  }
  await database.insert(providers).values({
    id,
    name: `live-${id}`,
    kind: 'openai-compatible',
    baseUrl: MODEL_URL,
    sealedCredential: seal(configuration.VAULT_KEYS, 'sk-live', `provider:${id}`),
  })
  await database
    .insert(models)
    .values({ id: MODEL, ownedBy: 'test', contextWindow: 100_000, maxOutputTokens: 1_000, prices })
    .onConflictDoNothing()
  await database
    .insert(modelRoutes)
    .values({ modelId: MODEL, position: 0, providerId: id, upstreamModel: 'upstream' })
    .onConflictDoNothing()
}

/** An organization with credits, one user of it, and its key. */
export async function newCaller() {
  const organization = newOrganization()
  const { organizationId } = organization
  await organization.ledger.grantCredits(organization.grant(CREDITS))
  const userId = crypto.randomUUID()
  const keyId = crypto.randomUUID()
  await seedMember(organizationId, userId, keyId)
  const principal: Principal = {
    organizationId,
    userId,
    credential: { kind: 'key', keyId, scopes: ['models'], compatibility: 'headgate', expiresAt: null },
    role: 'member' as Principal['role'],
    groupIds: [],
    entitlements: [],
    models: { all: true, ids: new Set() },
    tools: DEFAULT_TOOL_RIGHTS,
    integrations: { all: false, bySlug: {} },
    organizationLimitPerMinute: 1_000_000,
    userLimitPerMinute: 1_000_000,
    ledgerShards: 1,
    epoch: 1,
  }
  return { organization, principal, owner: { organizationId, userId } }
}

async function seedMember(organizationId: string, userId: string, keyId: string): Promise<void> {
  const name = `member-${userId}`
  await database.insert(organizations).values({ id: organizationId, name, slug: name })
  await database.insert(users).values({ id: userId, email: `${name}@example.com`, name })
  await database.insert(memberships).values({ organizationId, userId, role: 'member' })
  await database.insert(apiKeys).values({
    id: keyId,
    organizationId,
    userId,
    label: 'test',
    digest: keyId,
    pepperId: 'test',
    scopes: ['models'],
  })
  await database.insert(grants).values({
    organizationId,
    subjectType: 'organization',
    subjectId: organizationId,
    modelId: MODEL,
  })
}

export type Caller = Awaited<ReturnType<typeof newCaller>>

const identityOf = ({ principal }: Caller): CallIdentity => ({
  callId: newId('call'),
  requestId: newId('req'),
  at: Date.now(),
  actor: { userId: principal.userId, keyId: keyIdOf(principal), administrator: null, ip: '192.0.2.1' },
  surface: 'responses',
  action: 'POST /v1/responses',
})

/** A reader of a response, in the object itself: an abort ends it together with the object. */
export interface Follower {
  /** Everything that was read. */
  text: string
  /** Resolves when the stream has ended or broken, with whether it ended. */
  done: Promise<boolean>
}

/** The classes of objects that tests use: for one response each, and for many. */
export const OBJECTS = {
  responses: { RESPONSE_STREAMS: env.RESPONSE_STREAMS, RESPONSE_POOLS: env.RESPONSE_POOLS },
  /** With the tools of this side. */
  tools: { RESPONSE_STREAMS: env.TOOL_RESPONSES, RESPONSE_POOLS: env.TOOL_POOLS },
  /** They wait for the model to answer before a response begins. */
  patient: { RESPONSE_STREAMS: env.PATIENT_RESPONSES, RESPONSE_POOLS: env.PATIENT_POOLS },
}

/** The stub of the object that an id names. */
export function stubOf(caller: Caller, responseId: string, objects = OBJECTS.responses): DurableObjectStub {
  const place = placeOf(responseId)
  if (place === null) return objects.RESPONSE_STREAMS.getByName(responseId)
  return objects.RESPONSE_POOLS.getByName(poolName(caller.owner.organizationId, place))
}

/** The client of a response in the object that its id names. */
export const clientOf = (caller: Caller, responseId: string, objects = OBJECTS.responses): ResponseMethods =>
  responseObjectClient(objects, caller.owner.organizationId, responseId)

/** The methods of a response inside its object. */
export const methodsIn = (instance: unknown, responseId: string): ResponseMethods => {
  const object = instance as Record<string, (...parameters: unknown[]) => unknown>
  const before = placeOf(responseId) === null ? [] : [responseId]
  const call =
    (_: object, name: string) =>
    (...parameters: unknown[]) =>
      object[name]?.(...before, ...parameters)
  return new Proxy({} as ResponseMethods, { get: call as never })
}

/** The slice of a response in the storage of its object. */
export function sliceIn(storage: DurableObjectStorage, responseId: string): Slice {
  const slice = wholeStorage(storage)
  if (placeOf(responseId) === null) return slice
  const [row] = storage.sql.exec('SELECT number FROM responses WHERE id = ?', responseId).toArray()
  const number = Number(row?.number ?? -1)
  return { ...slice, firstKey: number * KEYS_PER_RESPONSE, prefix: `${number}/` }
}

/** What commits have of a response, and its row, in the storage of its object. */
export function committedIn(storage: DurableObjectStorage, responseId: string) {
  const empty = { head: null as string | null, frames: [] as Frames[] }
  if (placeOf(responseId) === null) return empty
  const select = 'SELECT number, head, since FROM responses WHERE id = ?'
  const [row] = storage.sql
    .exec<{ number: number; head: string | null; since: number }>(select, responseId)
    .toArray()
  if (!row) return empty
  const committed = { ...empty, head: row.head }
  for (const { sequence, parts } of new CommitRows(storage, 0).commits()) {
    for (const { number, head, frames } of parts) {
      if (number !== row.number) continue
      if (head !== null && sequence > row.since) committed.head = head
      if (frames) committed.frames.push(frames)
    }
  }
  return committed
}

/** A place where a response is alone, by the configuration. */
const ownPlace = () => (configuration.RESPONSE_OBJECTS === 'own' ? null : lonePlace(Date.now()))

/** A response of its own, whether or not it is ever begun. Every call takes a fresh stub. */
export function newResponse(
  caller: Caller,
  objects = OBJECTS.responses,
  compatibility: StartRequest['compatibility'] = null,
  connection?: StartRequest['connection'],
  more: Partial<StartRequest> = {},
  place: ResponsePlace | null = ownPlace(),
) {
  const { principal, owner } = caller
  const responseId = newResponseId(configuration.KEY_PEPPERS, place)
  const client = clientOf(caller, responseId, objects)
  const stub = () => stubOf(caller, responseId, objects)
  // Each start is a call of its own.
  const request = (): StartRequest => ({
    responseId,
    principal,
    identity: identityOf(caller),
    headers: [],
    compatibility,
    connection,
    ...more,
  })
  const type = connection && { type: 'response.create' }
  const bytesOf = (members: object) =>
    new TextEncoder().encode(
      JSON.stringify({
        ...{ ...type, model: MODEL, input: 'hello', stream: true, max_output_tokens: 100, ...members },
      }),
    )
  const bodyOf = (members: object) => new Response(bytesOf(members)).body as ReadableStream<Uint8Array>
  const follow = (after = 0): Follower => {
    const follower: Follower = { text: '', done: Promise.resolve(false) }
    follower.done = runInDurableObject(stub(), async (instance) => {
      const stream = await methodsIn(instance, responseId).follow(owner, after)
      if (stream === null || stream === 'busy') throw new Error('there is nothing to follow')
      const decoder = new TextDecoder()
      for await (const bytes of stream) follower.text += decoder.decode(bytes, { stream: true })
      return true
    }).catch(() => false)
    return follower
  }
  return {
    responseId,
    client,
    request,
    stub,
    follow,
    start: (members: object = {}) => client.start(request(), bodyOf(members)),
    /** With a body of bytes, so that the client repeats it when it fails on its way. */
    startRepeatably: (members: object = {}) => client.start(request(), bytesOf(members)),
    snapshot: () => client.snapshot(owner),
    state: () => client.state(owner),
    settle: () => client.settle(owner),
    cancel: () => client.cancel(owner),
    remove: () => client.remove(owner),
    ended: () => client.ended(owner),
    runAlarm: () => runDurableObjectAlarm(stub()),
    /** What its object has stored under a name. */
    stored: (name: string) =>
      runInDurableObject(stub(), (_, { storage }) => {
        const { head } = committedIn(storage, responseId)
        if (name === 'head' && head !== null) return JSON.parse(head)
        return new StoredValues(sliceIn(storage, responseId)).get(name)
      }),
    /** Its stored events as text, without reading them as a reader does. */
    storedEvents: () =>
      runInDurableObject(stub(), (_, { storage }) => {
        const stored = new StoredEvents(sliceIn(storage, responseId), new UnflushedEvents())
        const { frames } = committedIn(storage, responseId)
        const committed = frames.filter(({ first }) => first > stored.lastSequence)
        const bodies = [...stored.bodies(), ...committed.map(({ bytes }) => bytes)]
        return bodies.map((body) => new TextDecoder().decode(body)).join('')
      }),
    /** The whole stream of a response that has ended, or ends soon. */
    replay: async (after = 0): Promise<string> => {
      const follower = follow(after)
      if (!(await follower.done)) throw new Error(`the stream broke off: ${follower.text}`)
      return follower.text
    },
    row: async () => {
      const [row] = await query(
        'SELECT status, conversation_id, last_sequence FROM responses WHERE id = $1',
        responseId,
      )
      return row as { status: string; conversation_id: string | null; last_sequence: number } | undefined
    },
  }
}

export type LiveTrial = ReturnType<typeof newResponse>

/** Responses that share an object, in the order in which they are created. */
export function sharing(caller: Caller, count: number): LiveTrial[] {
  const place = lonePlace(Date.now())
  return Array.from({ length: count }, () => newResponse(caller, undefined, null, undefined, {}, place))
}

/** Looks again and again until a check passes. */
export const until = (check: () => unknown) => vi.waitFor(check, { timeout: 10_000, interval: 2 })

/** Waits for so many requests. @param model what `useScriptedModel` gave. @returns the last of them. */
export const requestOf = (model: { requests: ModelRequest[] }) => async (count: number) => {
  await until(() => expect(model.requests).toHaveLength(count))
  return model.requests[count - 1] as ModelRequest
}

export const phaseOf = async (response: LiveTrial) =>
  ((await response.stored('head')) as { phase: string } | null)?.phase

/** Forgets the runs of tools before each test of a file. @param answer is called with each run. */
export function useToolRuns(answer: (run: ToolRun) => void = () => {}): void {
  beforeEach(() => {
    toolRuns.all.length = 0
    toolRuns.answer = answer
  })
}

/** A response that has said a word and is not done. @param model what `useScriptedModel` gave. */
export async function speaking(model: { requests: ModelRequest[] }, caller: Caller, request: object = {}) {
  const response = newResponse(caller)
  const before = model.requests.length
  expect(await response.start(request)).toMatchObject({ error: null })
  const reader = response.follow()
  await until(() => expect(model.requests.length).toBeGreaterThan(before))
  const asked = model.requests.at(-1) as ModelRequest
  asked.say('Hello')
  await until(() => expect(reader.text).toContain('"delta":"Hello"'))
  return { response, reader, asked }
}

/** A response as these tests look at it. */
export interface ToldResponse extends Record<string, unknown> {
  status: string
  output_text: string
}

/** The response that a whole stream ends with. Fails for a stream that breaks a rule. */
export function lastOf(text: string): ToldResponse {
  const events = readResponseStream(text)
  expect(checkResponseStream(events)).toEqual([])
  return events.at(-1)?.data.response as ToldResponse
}

/** The whole stream of a response, and what it ends with. */
export async function replayed(response: LiveTrial): Promise<{ text: string; last: ToldResponse }> {
  const text = await response.replay()
  return { text, last: lastOf(text) }
}

/** The conversation of a response that is stored. */
export const conversationOf = async (response: LiveTrial) => (await response.row())?.conversation_id ?? ''

/** The conversation that nobody may be writing in any more. */
export async function writerOf(conversationId: string): Promise<string | null | undefined> {
  const [row] = await query('SELECT writer FROM conversations WHERE id = $1', conversationId)
  return (row as { writer: string | null } | undefined)?.writer
}

/** Ends what lapsed, then fails unless each call is recorded once and the credits add up. @returns records by status */
export async function settledCalls(organization: Organization): Promise<number[]> {
  await organization.runAlarm()
  // Calls are closed after their answers.
  await until(async () => expect((await organization.ledger.balance()).reserved).toBe(0))
  expect(await organization.ledger.flush()).toEqual({ pending: 0 })
  const rows = await expectIntactChain(organization)
  const calls = rows.filter(({ kind }) => kind === 'call')
  expect(new Set(calls.map(({ id }) => id)).size).toBe(calls.length)
  const { balance } = await organization.ledger.balance()
  expect(await creditSum(organization.organizationId)).toBe(balance)
  const spent = calls.reduce((sum, { creditsSettled }) => sum + creditsSettled, 0)
  expect(balance).toBe(CREDITS - spent)
  return calls.map(({ status }) => status)
}
