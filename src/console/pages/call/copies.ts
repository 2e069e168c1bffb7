import type { ShownCall } from './call-record.ts'

/** Surfaces whose calls can be made again by a client, with their paths. */
const PATHS: Readonly<Record<string, string>> = {
  chat_completions: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
}

const CONTENT: Readonly<Record<string, object>> = {
  chat_completions: { messages: [{ role: 'user', content: 'Hello' }] },
  messages: { max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] },
  responses: { input: 'Hello' },
}

/** A request like that of a call, with a text of ours: the caller's is not stored. */
export function curlText({ surface, action, model }: ShownCall, baseUrl: string): string {
  const [method = 'POST', path = ''] = action.split(' ')
  const known = PATHS[surface]
  const lines = [`curl ${known ? '' : `-X ${method} `}${baseUrl}${known ?? path}`]
  lines.push(`-H "Authorization: Bearer $HEADGATE_KEY"`)
  if (known) {
    lines.push(`-H 'Content-Type: application/json'`)
    lines.push(`-d '${JSON.stringify({ model, ...CONTENT[surface] }).replaceAll("'", "'\\''")}'`)
  }
  return lines.join(' \\\n  ')
}

/** The playground with the model and the surface of a call; null for a call of no model. */
export function playgroundSearch({ surface, model }: ShownCall): { surface: string; model: string } | null {
  return model !== null && surface in PATHS ? { surface, model } : null
}
