import {
  blockDeltaFrame,
  blockStartFrame,
  blockStopFrame,
  messageDeltaFrame,
  messageStartFrame,
  messageStopFrame,
} from '../../../scripts/local/model-upstream/message-frames.ts'
import { issueSignature } from '../../../scripts/local/model-upstream/signatures.ts'
import { gateway, upstreamControl } from '../../harness/gateway.ts'
import { MESSAGES_MODEL } from '../../harness/sdk-clients.ts'
import { uniqueName } from '../../harness/tenant.ts'
import { chatTurn, TOOL_TURN_USAGE } from './tool-task.ts'

/** One answer of the upstream, as the model. */
export interface ScriptedTurn {
  /** First block of the answer, with a signature; only for a messages upstream. */
  thinking?: string
  text?: string
  calls?: Array<{ name: string; input: object }>
}

/** Every turn reports this usage. */
export const TURN_USAGE = TOOL_TURN_USAGE

const EVENTS = { 'content-type': 'text/event-stream' }

/** Registers the model's answers, turn by turn. @returns the text with which a prompt gets these answers. */
export async function scriptTurns(protocol: 'chat' | 'messages', turns: ScriptedTurn[]): Promise<string> {
  const name = uniqueName('turns')
  const framesOf = protocol === 'chat' ? chatFrames : messagesFrames
  const responses = turns.map((turn) => ({
    steps: [{ status: 200, headers: EVENTS }, { sse: framesOf(turn) }],
  }))
  await upstreamControl(gateway()).putScript(name, { responses })
  return `script:${name}`
}

const chatFrames = ({ text, calls = [] }: ScriptedTurn): string[] =>
  chatTurn(
    calls.map(({ name, input }) => ({ name, input: JSON.stringify(input) })),
    text,
  )

function messagesFrames({ thinking, text, calls = [] }: ScriptedTurn): string[] {
  const { input: read, output } = TURN_USAGE
  const usage = { input: read, created5m: 0, created1h: 0, read: 0, output, thinking: 0 }
  const blocks: Array<{ start: object; deltas: Array<[type: string, member: string, value: string]> }> = []
  if (thinking !== undefined) {
    blocks.push({
      start: { type: 'thinking', thinking: '', signature: '' },
      deltas: [
        ['thinking_delta', 'thinking', thinking],
        ['signature_delta', 'signature', issueSignature(thinking, uniqueName('seed'))],
      ],
    })
  }
  if (text !== undefined) {
    blocks.push({ start: { type: 'text', text: '' }, deltas: [['text_delta', 'text', text]] })
  }
  for (const { name, input } of calls) {
    const json = JSON.stringify(input)
    const deltas = [json.slice(0, 9), json.slice(9)].map((part): [string, string, string] => [
      'input_json_delta',
      'partial_json',
      part,
    ])
    blocks.push({ start: { type: 'tool_use', id: uniqueName('toolu'), name, input: {} }, deltas })
  }
  return [
    messageStartFrame(uniqueName('msg'), MESSAGES_MODEL, usage),
    ...blocks.flatMap(({ start, deltas }, index) => [
      blockStartFrame(index, JSON.stringify(start)),
      ...deltas.map(([type, member, value]) => blockDeltaFrame(index, type, member, value)),
      blockStopFrame(index),
    ]),
    messageDeltaFrame(calls.length > 0 ? 'tool_use' : 'end_turn', null, usage),
    messageStopFrame,
  ]
}
