import { messages } from '../../../../src/gateway/protocols/messages.ts'
import { requestEdits } from '../../../../src/gateway/protocols/request-edits.ts'
import { sendToProvider } from '../../../../src/gateway/providers/send-to-provider.ts'
import type { Transport } from '../../../../src/gateway/providers/transport.ts'
import { applyEdits, joinBytes } from '../../../../src/lib/byte-edits.ts'
import { drained } from '../../../../src/lib/slices.ts'
import { recordFetch, requestOf, type Sent } from './upstream-recorder.ts'

/** A conversation with all that a platform of Claude has to leave as it is. */
export const CONVERSATION = {
  max_tokens: 16,
  system: [{ type: 'text' as const, text: 'Be brief.', cache_control: { type: 'ephemeral' as const } }],
  messages: [
    { role: 'user' as const, content: 'Hi' },
    {
      role: 'assistant' as const,
      content: [
        { type: 'thinking' as const, thinking: 't', signature: 'sig' },
        { type: 'tool_use' as const, id: 'toolu_1', name: 'f', input: { a: 1 } },
      ],
    },
    {
      role: 'user' as const,
      content: [{ type: 'tool_result' as const, tool_use_id: 'toolu_1', content: 'ok' }],
    },
  ],
  tools: [{ name: 'f', input_schema: { type: 'object' as const } }],
  thinking: { type: 'enabled' as const, budget_tokens: 1_024 },
}

/** Sends a messages request over a transport as a call of the gateway does. @returns all that went out, in order. */
export async function sentByGateway(
  transport: Transport,
  model: string,
  request: object,
  { stream = false, headers = {} } = {},
): Promise<Sent[]> {
  const sent = recordFetch(({ address }) =>
    Response.json(String(address).endsWith('/token') ? { access_token: 'ya29.x', expires_in: 3_599 } : {}),
  )
  const target = {
    operation: 'messages' as const,
    upstreamModel: model,
    stream,
    callerHeaders: new Headers(headers),
  }
  const source = new TextEncoder().encode(JSON.stringify({ model: 'caller-name', ...request, stream }))
  const outline = drained(messages.outline(source))
  const bodyMembers = transport.bodyMembers?.(target) ?? null
  const { body: edits } = drained(
    requestEdits(outline, messages, { upstreamModel: model, capabilities: [], bodyMembers }),
  )
  const body = joinBytes(applyEdits(source, edits).pieces)
  await sendToProvider(transport, requestOf({ ...target, body, now: Date.parse('2026-11-23T12:00:00Z') }))
  return sent
}

/** A `fetch` for an official client, which keeps what it sends. */
export function clientFetch(): { fetch: typeof globalThis.fetch; sent: Sent[] } {
  const sent: Sent[] = []
  const fetch = async (address: unknown, init?: RequestInit) => {
    const { method, headers, body, redirect } = init ?? {}
    const names = Object.fromEntries(new Headers(headers))
    sent.push({ address: String(address), method, headers: names, body: body as BodyInit, redirect })
    return Response.json({ content: [] })
  }
  return { fetch: fetch as typeof globalThis.fetch, sent }
}

export const bodyOf = ({ body }: Sent): Record<string, unknown> =>
  JSON.parse(typeof body === 'string' ? body : new TextDecoder().decode(body as Uint8Array))
