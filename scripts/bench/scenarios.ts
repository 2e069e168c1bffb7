import type { DemoKeys } from '../local-secrets.ts'
import { conversation } from './conversations.ts'

/** One request, the same for every call of a scenario. */
export interface Call {
  path: string
  headers: Record<string, string>
  body: string
  /** What a complete answer ends with, so that a stream which broke off does not count as one. */
  ending: string
}

/** One kind of call that is measured. */
export interface Scenario {
  name: string
  title: string
  stream: boolean
  /** Events of the upstream's answer; 0 where it is not streamed. */
  events: number
  /** Bytes of a request's body, about. */
  bodyBytes: number
  /** Whether the gateway is called in another protocol than the upstream speaks. */
  translated: boolean
  /** What the gateway is asked. */
  call: Call
  /** What the other servers are asked: the same conversation, in the upstream's own protocol. */
  baseline: Call
}

type Protocol = 'chat' | 'messages'

interface Plan {
  name: string
  title: string
  caller: Protocol
  upstream: Protocol
  stream?: boolean
  /** Text deltas of a streamed answer. */
  deltas?: number
  bodyBytes?: number
}

/** With its opening and closing events a streamed answer comes to about fifty events. */
const DELTAS = 46
/** The cost of one event is the slope between two lengths, which leaves out what a stream costs in itself. */
const LONG_DELTAS = 546
const SMALL_BYTES = 1024
const MEDIUM_BYTES = 100 * 1024
const LARGE_BYTES = 5 * 1024 * 1024
/** Twenty megabytes at once are well within what an isolate holds of bodies; it answers 429 beyond that. */
const LARGE_CONNECTIONS = 4

const CHAT = { caller: 'chat', upstream: 'chat' } as const
const MESSAGES = { caller: 'messages', upstream: 'messages' } as const
const TO_MESSAGES = { caller: 'chat', upstream: 'messages' } as const
const TO_CHAT = { caller: 'messages', upstream: 'chat' } as const

/** The largest bodies come last: what memory they take stays with the process. */
const PLANS: readonly Plan[] = [
  { name: 'chat', title: 'chat, whole', ...CHAT },
  { name: 'chat-stream', title: 'chat, streamed', ...CHAT, stream: true },
  { name: 'messages', title: 'messages, whole', ...MESSAGES },
  { name: 'messages-stream', title: 'messages, streamed', ...MESSAGES, stream: true },
  { name: 'chat-long-stream', title: 'chat, long stream', ...CHAT, stream: true, deltas: LONG_DELTAS },
  { name: 'chat-to-messages', title: 'chat to messages, whole', ...TO_MESSAGES },
  { name: 'chat-to-messages-stream', title: 'chat to messages, streamed', ...TO_MESSAGES, stream: true },
  { name: 'messages-to-chat', title: 'messages to chat, whole', ...TO_CHAT },
  { name: 'messages-to-chat-stream', title: 'messages to chat, streamed', ...TO_CHAT, stream: true },
  { name: 'chat-100kb', title: 'chat, 100 KB', ...CHAT, bodyBytes: MEDIUM_BYTES },
  { name: 'messages-to-chat-100kb', title: 'messages to chat, 100 KB', ...TO_CHAT, bodyBytes: MEDIUM_BYTES },
  { name: 'chat-5mb', title: 'chat, 5 MB', ...CHAT, bodyBytes: LARGE_BYTES },
  { name: 'messages-to-chat-5mb', title: 'messages to chat, 5 MB', ...TO_CHAT, bodyBytes: LARGE_BYTES },
]

export const SCENARIO_NAMES: readonly string[] = PLANS.map(({ name }) => name)

/** Name of the script at the model upstream that plays a scenario's answer. */
export const scriptName = (scenario: Pick<Scenario, 'name'>) => `bench-${scenario.name}`

/** How many text deltas the answer of a streamed scenario has. */
export const deltasOf = (scenario: Pick<Scenario, 'name'>): number =>
  PLANS.find(({ name }) => name === scenario.name)?.deltas ?? DELTAS

/** Whether a request is about 1 KB in the upstream's own protocol, with few events: what the aims are about. */
export const isOrdinary = ({ bodyBytes, events, translated }: Scenario): boolean =>
  bodyBytes === SMALL_BYTES && events < 100 && !translated

/** Whether one call takes so long that those which a generator cuts off at the end of its time would count. */
export const isLong = ({ bodyBytes, events }: Scenario): boolean => bodyBytes > SMALL_BYTES || events > 100

/** Whether so few calls fit into a round that the calls of one connection get as much time as those of many. */
export const isLarge = ({ bodyBytes }: Pick<Scenario, 'bodyBytes'>): boolean => bodyBytes === LARGE_BYTES

/** Connections of a scenario's throughput rounds. @param wanted what was asked for */
export const connectionsOf = (scenario: Pick<Scenario, 'bodyBytes'>, wanted: number): number =>
  isLarge(scenario) ? Math.min(wanted, LARGE_CONNECTIONS) : wanted

/** Every scenario, as calls of the demo organization's owner. `events` is filled in once the answer is known. */
export function allScenarios(keys: DemoKeys): Scenario[] {
  return PLANS.map((plan) => {
    const { name, title, caller, upstream, stream = false, bodyBytes = SMALL_BYTES } = plan
    const call = callOf(caller, plan, keys)
    const baseline = caller === upstream ? call : callOf(upstream, plan, keys)
    return { name, title, stream, events: 0, bodyBytes, translated: caller !== upstream, call, baseline }
  })
}

const MODELS: Record<Protocol, string> = { chat: 'scripted-chat', messages: 'scripted-messages' }
const STREAM_ENDINGS: Record<Protocol, string> = {
  chat: 'data: [DONE]',
  messages: 'data: {"type":"message_stop"}',
}

/** A conversation of texts alone reads the same in both protocols. */
function callOf(protocol: Protocol, plan: Plan, keys: DemoKeys): Call {
  const { upstream, stream = false, bodyBytes = SMALL_BYTES } = plan
  const members = { model: MODELS[upstream], max_tokens: 1024, temperature: 1, ...(stream && { stream }) }
  return {
    path: protocol === 'chat' ? '/v1/chat/completions' : '/v1/messages',
    headers: {
      authorization: `Bearer ${keys.owner}`,
      'content-type': 'application/json',
      ...(protocol === 'messages' && { 'anthropic-version': '2023-06-01' }),
    },
    body: JSON.stringify(conversation(members, `script:${scriptName(plan)} `, bodyBytes)),
    ending: stream ? STREAM_ENDINGS[protocol] : '}',
  }
}
