import { gateway } from '../../harness/gateway.ts'
import { type Answer, jsonOf, send } from '../../harness/send.ts'
import type { GatewayAddress } from '../../harness/start-gateway.ts'
import { bearer, type Tenant } from '../../harness/tenant.ts'
import { type Told, toldBy, toldIn } from './dlp-answers.ts'
import { checkedEvents } from './response-streams.ts'

type Json = Record<string, unknown>

/** The surfaces that generate, by the protocol of their callers. */
export const SURFACES = ['chat', 'messages', 'responses'] as const
export type Surface = (typeof SURFACES)[number]

const PATHS: Record<Surface, string> = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
}

/** Each surface, whole and streamed. */
export const FORMS = SURFACES.flatMap((surface) =>
  [false, true].map(
    (stream) => [`${surface}, ${stream ? 'streamed' : 'whole'}`, { surface, stream }] as const,
  ),
)

const parameters = { type: 'object', properties: { code: { type: 'string' } } }

/** The tools `find` and `tell` in the form of a surface. */
export function toolsOf(surface: Surface): Json[] {
  return ['find', 'tell'].map((name) => {
    if (surface === 'chat') return { type: 'function', function: { name, parameters } }
    if (surface === 'messages') return { name, input_schema: parameters }
    return { type: 'function', name, parameters, strict: false }
  })
}

/** A request of a surface with this text of the user, and the tools. */
export function requestOf(surface: Surface, model: string, text: string, more: Json = {}): Json {
  const tools = toolsOf(surface)
  const messages = [{ role: 'user', content: text }]
  if (surface === 'chat') return { model, messages, tools, max_completion_tokens: 2_000, ...more }
  if (surface === 'messages') return { model, messages, tools, max_tokens: 2_000, ...more }
  return { model, input: text, tools, max_output_tokens: 2_000, ...more }
}

/** Sends a request of a surface, whatever is answered. */
export function postTo(
  surface: Surface,
  tenant: Pick<Tenant, 'key'>,
  body: Json,
  address: Pick<GatewayAddress, 'baseUrl'> = gateway(),
): Promise<Answer> {
  const headers = bearer(tenant.key)
  return send(address.baseUrl + PATHS[surface], { method: 'POST', headers, body: JSON.stringify(body) })
}

/** A successful answer of a surface, assembled as clients do. @throws for any other. */
export function assembled(surface: Surface, stream: boolean, answer: Answer): Told {
  if (answer.status !== 200) throw new Error(`status ${answer.status}: ${answer.text.slice(0, 500)}`)
  if (surface !== 'responses') return stream ? toldBy(answer.text) : toldIn(jsonOf(answer))
  const response = stream ? checkedEvents(answer.text).at(-1)?.data.response : jsonOf(answer)
  return itemsOf(response as unknown as { output: Json[] })
}

function itemsOf({ output }: { output: Json[] }): Told {
  const told: Told = { text: '', reasoning: '', signature: '', calls: [] }
  for (const { type, content, summary, name, arguments: json } of output) {
    const texts = [summary, content].flatMap((parts) => (parts ?? []) as Array<{ text?: string }>)
    const text = texts.map((part) => part.text ?? '').join('')
    if (type === 'reasoning') told.reasoning += text
    if (type === 'message') told.text += text
    if (type === 'function_call') told.calls.push({ name: String(name), json: String(json) })
  }
  return told
}
