import type { ContextItem } from '../../model/types.ts'
import { untrusted } from '../../model/untrusted.ts'
import type { ModelItems } from './item-type.ts'

/** A `shell_call` with its result, as far as it is well-formed: items are also stored from requests. */
interface ShellCall {
  action?: { commands?: unknown; timeout_ms?: unknown; max_output_length?: unknown } | null
  output?: unknown
  error?: unknown
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** The call of the function `shell`, and the output of its commands as data without authority. */
export function shellCallToModel({ callId, bytes }: ContextItem): ModelItems {
  const { action, output, error }: ShellCall = JSON.parse(decoder.decode(bytes))
  const results = Array.isArray(output) ? output : []
  if (callId === null || (results.length === 0 && typeof error !== 'string'))
    return { items: [], results: [] }
  const commands = Array.isArray(action?.commands) ? action.commands.filter(isText) : []
  const { timeout_ms = null, max_output_length = null } = action ?? {}
  const texts = results.map((result, index) =>
    resultText(result, commands.length > 1 ? commands[index] : undefined),
  )
  const text = typeof error === 'string' ? error : untrusted('the shell', texts.join('\n'))
  const call = {
    type: 'function_call',
    call_id: callId,
    name: 'shell',
    arguments: JSON.stringify({ commands, timeout_ms, max_output_length }),
  }
  return {
    items: [encode(call)],
    results: [encode({ type: 'function_call_output', call_id: callId, output: text })],
  }
}

function resultText(result: unknown, command: string | undefined): string {
  const { stdout, stderr, outcome } = (result ?? {}) as Record<string, unknown>
  const { type, exit_code: code } = (outcome ?? {}) as Record<string, unknown>
  return [
    ...(command === undefined ? [] : [`$ ${command}`]),
    type === 'timeout'
      ? 'Ended by its time limit.'
      : `Exit code: ${typeof code === 'number' ? code : 'unknown'}`,
    ...(typeof stdout === 'string' && stdout !== '' ? [`stdout:\n${stdout}`] : []),
    ...(typeof stderr === 'string' && stderr !== '' ? [`stderr:\n${stderr}`] : []),
  ].join('\n')
}

const isText = (value: unknown): value is string => typeof value === 'string'

const encode = (item: object): Uint8Array => encoder.encode(JSON.stringify(item))
