import type { UpstreamRequest } from '../../harness/upstream.ts'
import { bodyOf } from './governed-calls.ts'

type Json = Record<string, unknown>

/** An entry of a conversation, independent of the protocol. A call and its result have the number of the call. */
export type Told =
  | [kind: 'user' | 'text' | 'thinking', text: string]
  | [kind: 'call', number: number, name: unknown, input: unknown]
  | [kind: 'result', number: number, text: string]

/** The entries of a conversation in a request to the upstream, without instructions. */
export function toldConversation(request: UpstreamRequest): Told[] {
  const messages = bodyOf(request).messages as Json[]
  const calls: unknown[] = []
  const numberOf = (id: unknown) => calls.indexOf(id)
  const called = (id: unknown) => calls.push(id) - 1
  const ofChat = (message: Json): Told[] => {
    if (message.role === 'tool') return [['result', numberOf(message.tool_call_id), textOf(message.content)]]
    const said = textOf(message.content)
    const kind = message.role === 'user' ? 'user' : 'text'
    const made = ((message.tool_calls ?? []) as Array<{ id: unknown; function: Json }>).map(
      ({ id, function: { name, arguments: json } }): Told => [
        'call',
        called(id),
        name,
        JSON.parse(String(json)),
      ],
    )
    return [...(said === '' ? [] : [[kind, said] as Told]), ...made]
  }
  const ofMessages = ({ role, content }: Json): Told[] => {
    if (typeof content === 'string') return [[role === 'user' ? 'user' : 'text', content]]
    return (content as Json[]).map((block): Told => {
      if (block.type === 'tool_use') return ['call', called(block.id), block.name, block.input]
      if (block.type === 'tool_result') return ['result', numberOf(block.tool_use_id), textOf(block.content)]
      if (block.type === 'thinking') return ['thinking', String(block.thinking)]
      return [role === 'user' ? 'user' : 'text', String(block.text)]
    })
  }
  const isInstruction = ({ role }: Json) => role === 'system' || role === 'developer'
  const read = request.path === '/v1/messages' ? ofMessages : ofChat
  return messages.filter((message) => !isInstruction(message)).flatMap(read)
}

const textOf = (content: unknown): string =>
  Array.isArray(content) ? content.map((part: Json) => String(part.text)).join('') : String(content ?? '')
