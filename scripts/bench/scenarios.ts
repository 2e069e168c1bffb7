import type { DemoKeys } from '../local-secrets.ts'

export const SCENARIO_NAMES = [
  'chat',
  'chat-stream',
  'messages',
  'messages-stream',
  'chat-long-stream',
] as const

export type ScenarioName = (typeof SCENARIO_NAMES)[number]

/** One kind of call that is measured. */
export interface Scenario {
  name: ScenarioName
  title: string
  stream: boolean
  /** Events of an answer; 0 where it is not streamed. */
  events: number
  path: string
  headers: Record<string, string>
  body: string
  /** What a complete answer ends with, so that a stream which broke off does not count as one. */
  ending: string
}

/** Text deltas of a streamed answer; with its opening and closing events it comes to about fifty events. */
const DELTAS = 46
/** The cost of one event is the slope between two lengths, which leaves out what a stream costs in itself. */
const LONG_DELTAS = 546
const BODY_BYTES = 1024

/** Name of the script at the model upstream that plays a scenario's answer. */
export const scriptName = (scenario: Pick<Scenario, 'name'>) => `bench-${scenario.name}`

/** How many text deltas the answer of a streamed scenario has. */
export const deltasOf = (scenario: Pick<Scenario, 'name'>) =>
  scenario.name === 'chat-long-stream' ? LONG_DELTAS : DELTAS

/** Every scenario, as calls of the demo organization's owner. `events` is filled in once the answer is known. */
export function allScenarios(keys: DemoKeys): Scenario[] {
  const headers = { authorization: `Bearer ${keys.owner}`, 'content-type': 'application/json' }
  const chat = { path: '/v1/chat/completions', headers, model: 'scripted-chat' }
  const messages = {
    path: '/v1/messages',
    headers: { ...headers, 'anthropic-version': '2023-06-01' },
    model: 'scripted-messages',
  }
  return [
    scenario('chat', 'chat, whole', false, '}', chat),
    scenario('chat-stream', 'chat, streamed', true, 'data: [DONE]', chat),
    scenario('messages', 'messages, whole', false, '}', messages),
    scenario('messages-stream', 'messages, streamed', true, 'data: {"type":"message_stop"}', messages),
    scenario('chat-long-stream', 'chat, long stream', true, 'data: [DONE]', chat),
  ]
}

function scenario(
  name: ScenarioName,
  title: string,
  stream: boolean,
  ending: string,
  call: { path: string; headers: Record<string, string>; model: string },
): Scenario {
  const { path, headers, model } = call
  const body = JSON.stringify(requestBody(model, stream, `script:${scriptName({ name })} `))
  return { name, title, stream, events: 0, path, headers, body, ending }
}

/** A request of about 1 KB: what a short conversation looks like. */
function requestBody(model: string, stream: boolean, script: string): Record<string, unknown> {
  const sentence = 'Summarise the minutes of the meeting, name who agreed to do what, and keep every date. '
  const messages = [
    { role: 'user', content: 'Which of our suppliers deliver on Saturdays?' },
    { role: 'assistant', content: 'Two of them do: the bakery before seven, and the printer until noon.' },
    { role: 'user', content: script },
  ]
  const body = { model, max_tokens: 1024, temperature: 1, ...(stream && { stream }), messages }
  const missing = BODY_BYTES - Buffer.byteLength(JSON.stringify(body))
  const filled = script + sentence.repeat(Math.ceil(missing / sentence.length)).slice(0, missing)
  return { ...body, messages: [...messages.slice(0, 2), { role: 'user', content: filled }] }
}
