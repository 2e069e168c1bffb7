import type { DemoKeys } from '../local-secrets.ts'
import { conversation } from './conversations.ts'

/** The request of a scenario, the same for each of its calls. */
export interface Call {
  path: string
  headers: Record<string, string>
  /** JSON to POST; a GET without it. */
  body?: string
  /** API keys that calls use in turn instead of the one in the headers. */
  keys?: readonly string[]
  /** Text at the end of every complete answer, so that a stream that was cut off does not count. */
  ending: string
}

/** The aims of a scenario. */
export type AimKind = 'whole' | 'paced' | 'burst' | 'responses-whole' | 'responses-paced' | 'responses-burst'

/** A kind of call that is measured. */
export interface Scenario {
  name: string
  title: string
  stream: boolean
  /** Milliseconds between two events of the upstream; null where they come at once. */
  pace: number | null
  /** Events of the upstream's answer; 0 where it is not streamed. */
  events: number
  /** Bytes of a request's body, about. */
  bodyBytes: number
  /** Whether the call uses another protocol than the upstream. */
  translated: boolean
  /** Null for none. */
  aims: AimKind | null
  /** Connections of its throughput rounds, whatever was requested. */
  connections: number | null
  /** Whether `wrk` makes the load of its throughput rounds. */
  byWrk: boolean
  /** Protocol of the upstream. */
  upstream: UpstreamProtocol
  /** The request to the gateway. */
  call: Call
  /** The request to the upstream and the bare proxy: the same conversation, in the upstream's own protocol. */
  baseline: Call
}

type UpstreamProtocol = 'chat' | 'messages'
type Protocol = UpstreamProtocol | 'responses'

interface Plan {
  name: string
  title: string
  caller: Protocol
  upstream: UpstreamProtocol
  /** A model whose vendor has a transport of its own, where the gateway's call goes to another one than the baseline. */
  model?: string
  /** A list of models instead of a generation. */
  list?: boolean
  stream?: boolean
  pace?: number
  /** Whether a streamed chat requests its usage. */
  usage?: boolean
  bodyBytes?: number
  connections?: number
  byWrk?: boolean
  /** Made by many users of an organization with so many ledger shards. */
  shards?: number
}

/** Text deltas of a streamed answer; with opening and closing events it has about fifty events. */
export const DELTAS = 46
/** Milliseconds between two events of a quick model. */
const PACE_MS = 2
const SMALL_BYTES = 1024
const TEN_KB = 10 * 1024
const MEDIUM_BYTES = 100 * 1024
const LARGE_BYTES = 5 * 1024 * 1024
/** Twenty megabytes at once are well within what an isolate holds of bodies; it answers 429 beyond that. */
const LARGE_CONNECTIONS = 4
/** Streams wait more than whole calls do, so that it takes more of them to keep a server busy. */
const STREAM_FACTOR = 2

const CHAT = { caller: 'chat', upstream: 'chat' } as const
const MESSAGES = { caller: 'messages', upstream: 'messages' } as const
/** Signed requests, and binary streams. */
const ON_BEDROCK = { ...MESSAGES, model: 'scripted-bedrock-claude' }
const RESPONSES = { caller: 'responses', upstream: 'chat' } as const
const TO_MESSAGES = { caller: 'chat', upstream: 'messages' } as const
const TO_CHAT = { caller: 'messages', upstream: 'chat' } as const
/** Scenarios for a second load generator with few connections, as users measure. */
const OUTSIDE = { ...CHAT, connections: 8 }
const PACED = { stream: true, pace: PACE_MS } as const

/** The largest bodies come last: what memory they take stays with the process. */
const PLANS: readonly Plan[] = [
  { name: 'chat', title: 'chat, whole', ...CHAT },
  { name: 'chat-300b', title: 'chat, 300 B', ...OUTSIDE, bodyBytes: 300 },
  { name: 'chat-300b-wrk', title: 'chat, 300 B, by wrk', ...OUTSIDE, bodyBytes: 300, byWrk: true },
  { name: 'chat-10kb', title: 'chat, 10 KB', ...OUTSIDE, bodyBytes: TEN_KB },
  { name: 'chat-10kb-wrk', title: 'chat, 10 KB, by wrk', ...OUTSIDE, bodyBytes: TEN_KB, byWrk: true },
  { name: 'messages', title: 'messages, whole', ...MESSAGES },
  { name: 'responses-whole', title: 'responses, whole', ...RESPONSES },
  { name: 'models', title: 'list of models', ...CHAT, list: true },
  { name: 'chat-paced', title: 'chat, paced', ...CHAT, ...PACED },
  { name: 'chat-paced-usage', title: 'chat, paced, usage asked', ...CHAT, ...PACED, usage: true },
  { name: 'chat-stream', title: 'chat, burst', ...CHAT, stream: true },
  { name: 'chat-stream-usage', title: 'chat, burst, usage asked', ...CHAT, stream: true, usage: true },
  { name: 'messages-paced', title: 'messages, paced', ...MESSAGES, ...PACED },
  { name: 'messages-stream', title: 'messages, burst', ...MESSAGES, stream: true },
  { name: 'bedrock', title: 'messages on Bedrock, signed', ...ON_BEDROCK },
  { name: 'bedrock-stream', title: 'messages on Bedrock, burst', ...ON_BEDROCK, stream: true },
  { name: 'responses-paced', title: 'responses, paced', ...RESPONSES, ...PACED },
  { name: 'responses-stream', title: 'responses, burst', ...RESPONSES, stream: true },
  { name: 'chat-one-shard', title: 'chat, 16 users, one ledger shard', ...CHAT, shards: 1 },
  { name: 'chat-four-shards', title: 'chat, 16 users, four ledger shards', ...CHAT, shards: 4 },
  { name: 'chat-to-messages', title: 'chat to messages, whole', ...TO_MESSAGES },
  { name: 'chat-to-messages-stream', title: 'chat to messages, burst', ...TO_MESSAGES, stream: true },
  { name: 'messages-to-chat', title: 'messages to chat, whole', ...TO_CHAT },
  { name: 'messages-to-chat-stream', title: 'messages to chat, burst', ...TO_CHAT, stream: true },
  { name: 'chat-100kb', title: 'chat, 100 KB', ...CHAT, bodyBytes: MEDIUM_BYTES },
  { name: 'messages-to-chat-100kb', title: 'messages to chat, 100 KB', ...TO_CHAT, bodyBytes: MEDIUM_BYTES },
  { name: 'chat-5mb', title: 'chat, 5 MB', ...CHAT, bodyBytes: LARGE_BYTES },
  { name: 'messages-to-chat-5mb', title: 'messages to chat, 5 MB', ...TO_CHAT, bodyBytes: LARGE_BYTES },
]

export const SCENARIO_NAMES: readonly string[] = PLANS.map(({ name }) => name)

/** Generations with short bodies, not between the two model protocols and not at other vendors. */
const hasAims = ({ caller, upstream, bodyBytes = 0, shards, model, list }: Plan): boolean =>
  (caller === upstream || caller === 'responses') &&
  bodyBytes <= TEN_KB &&
  shards === undefined &&
  model === undefined &&
  !list

function aimsOf(plan: Plan): AimKind | null {
  if (!hasAims(plan)) return null
  const form = !plan.stream ? 'whole' : plan.pace === undefined ? 'burst' : 'paced'
  return plan.caller === 'responses' ? `responses-${form}` : form
}

/** The scenarios that the aims are about. */
export const AIMED_NAMES: readonly string[] = PLANS.filter(hasAims).map(({ name }) => name)

/** Name of the script at the model upstream that plays a scenario's answer. */
export const scriptName = (scenario: Pick<Scenario, 'name'>) => `bench-${scenario.name}`

/** Whether so few calls fit into a round that the calls of one connection get as much time as those of many. */
export const isLarge = ({ bodyBytes }: Pick<Scenario, 'bodyBytes'>): boolean => bodyBytes === LARGE_BYTES

/** Connections of a scenario's throughput rounds. @param wanted as requested */
export function connectionsOf(
  scenario: Pick<Scenario, 'bodyBytes' | 'stream' | 'connections'>,
  wanted: number,
): number {
  if (scenario.connections !== null) return scenario.connections
  if (isLarge(scenario)) return Math.min(wanted, LARGE_CONNECTIONS)
  return scenario.stream ? wanted * STREAM_FACTOR : wanted
}

/**
 * Every scenario, as calls of the demo organization's owner. `events` is filled in once the answer is known.
 *
 * @param shardKeys keys of many users by the ledger shards that their organization has
 */
export function allScenarios(keys: DemoKeys, shardKeys: ReadonlyMap<number, string[]>): Scenario[] {
  return PLANS.map((plan) => {
    const { name, title, caller, upstream, stream = false, pace = null, shards } = plan
    const { connections = null, byWrk = false } = plan
    const { bodyBytes = plan.list ? 0 : SMALL_BYTES } = plan
    const manyKeys = shards === undefined ? undefined : shardKeys.get(shards)
    const call = callOf(caller, plan, keys.owner)
    return {
      ...{ name, title, stream, pace, events: 0, bodyBytes, translated: caller !== upstream, upstream },
      ...{ aims: aimsOf(plan), connections, byWrk },
      call: manyKeys === undefined ? call : { ...call, keys: manyKeys },
      baseline: callOf(upstream, { ...plan, model: MODELS[upstream] }, keys.owner),
    }
  })
}

const MODELS: Record<UpstreamProtocol, string> = { chat: 'scripted-chat', messages: 'scripted-messages' }
const PATHS: Record<Protocol, string> = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
}
const STREAM_ENDINGS: Record<Protocol, string> = {
  chat: 'data: [DONE]',
  messages: 'data: {"type":"message_stop"}',
  responses: 'event: response.completed',
}

/** A conversation of texts alone reads the same in all protocols. */
function callOf(protocol: Protocol, plan: Plan, key: string): Call {
  const authorization = `Bearer ${key}`
  if (plan.list) return { path: '/v1/models', headers: { authorization }, ending: '}' }
  const { upstream, stream = false, usage, bodyBytes = SMALL_BYTES, model = MODELS[upstream] } = plan
  const limit = protocol === 'responses' ? { max_output_tokens: 1024, store: false } : { max_tokens: 1024 }
  const members = {
    model,
    ...limit,
    temperature: 1,
    ...(stream && { stream }),
    ...(usage && { stream_options: { include_usage: true } }),
  }
  const { messages, ...rest } = conversation(members, `script:${scriptName(plan)} `, bodyBytes)
  return {
    path: PATHS[protocol],
    headers: {
      authorization,
      'content-type': 'application/json',
      ...(protocol === 'messages' && { 'anthropic-version': '2023-06-01' }),
    },
    body: JSON.stringify(protocol === 'responses' ? { ...rest, input: messages } : { ...rest, messages }),
    ending: stream ? STREAM_ENDINGS[protocol] : '}',
  }
}
