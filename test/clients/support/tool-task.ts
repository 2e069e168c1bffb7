import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { vi } from 'vitest'
import { createChatFrames, roleDelta, streamEnd } from '../../../scripts/local/model-upstream/chat-frames.ts'
import {
  blockDeltaFrame,
  blockStartFrame,
  blockStopFrame,
  messageDeltaFrame,
  messageStartFrame,
  messageStopFrame,
} from '../../../scripts/local/model-upstream/message-frames.ts'
import { upstreamControl } from '../../harness/gateway.ts'
import { CHAT_MODEL, MESSAGES_MODEL } from '../../harness/sdk-clients.ts'
import type { GatewayAddress } from '../../harness/start-gateway.ts'
import { uniqueName } from '../../harness/tenant.ts'

/** Usage that the upstream reports for the turn that calls the tool. */
export const TOOL_TURN_USAGE = { input: 1_234, output: 56 }

export interface ToolTask {
  /** The prompt, which names the script. */
  prompt: string
  /** Text that only the file has: a client that outputs it has read the file. */
  secretWord: string
  /** Runs beside the client: lets the model's second turn be its own answer, which quotes what the tool returned. */
  handOver(): Promise<void>
}

export interface ReadingTool {
  name: string
  /** Name of the argument that takes the path. */
  pathArgument: string
}

/** Longer than a client may take, so that the client's own failure is reported first. */
const HAND_OVER_LIMIT_MS = 100_000

/**
 * Prepares a task that takes one tool call: the scripted upstream, as the model, asks for a file to be read.
 *
 * @param folder where the file is put
 */
export async function prepareToolTask(
  address: Pick<GatewayAddress, 'standIns'>,
  protocol: 'chat' | 'messages',
  tool: ReadingTool,
  folder: string,
): Promise<ToolTask> {
  const control = upstreamControl(address)
  const script = uniqueName('task')
  const secretWord = `marmalade-${randomBytes(8).toString('hex')}`
  const path = join(folder, 'note.txt')
  writeFileSync(path, `The word of the day is ${secretWord}.\n`)
  const input = JSON.stringify({ [tool.pathArgument]: path })
  const frames = protocol === 'chat' ? chatToolCall(tool.name, input) : messagesToolCall(tool.name, input)
  await control.putScript(script, {
    steps: [
      { status: 200, headers: { 'content-type': 'text/event-stream' } },
      { sse: frames.slice(0, -1) },
      { waitForSignal: script },
      { sse: frames.slice(-1) },
    ],
  })
  return {
    prompt: `Say what the file note.txt holds. script:${script}`,
    secretWord,
    handOver: async () => {
      await vi.waitFor(
        async () => {
          if ((await control.waiting())[script] !== 1) throw new Error('the model was not asked')
        },
        { timeout: HAND_OVER_LIMIT_MS, interval: 50 },
      )
      await control.removeScript(script)
      await control.release(script)
    },
  }
}

function messagesToolCall(name: string, input: string): string[] {
  const { input: read, output } = TOOL_TURN_USAGE
  const usage = { input: read, created5m: 0, created1h: 0, read: 0, output, thinking: 0 }
  const block = JSON.stringify({ type: 'tool_use', id: uniqueName('toolu'), name, input: {} })
  return [
    messageStartFrame(uniqueName('msg'), MESSAGES_MODEL, usage),
    blockStartFrame(0, block),
    blockDeltaFrame(0, 'input_json_delta', 'partial_json', input.slice(0, 9)),
    blockDeltaFrame(0, 'input_json_delta', 'partial_json', input.slice(9)),
    blockStopFrame(0),
    messageDeltaFrame('tool_use', null, usage),
    messageStopFrame,
  ]
}

const chatToolCall = (name: string, input: string): string[] => chatTurn([{ name, input }])

/** A streamed turn of a chat completions upstream. @param calls their input as JSON text */
export function chatTurn(calls: Array<{ name: string; input: string }>, text = ''): string[] {
  const frames = createChatFrames(CHAT_MODEL, true)
  const { input: prompt, output: completion } = TOOL_TURN_USAGE
  const fragments = calls.flatMap(({ name, input }, index) => {
    const id = uniqueName('call')
    const fragment = (more: object) => frames.choice(0, JSON.stringify({ tool_calls: [{ index, ...more }] }))
    return [
      fragment({ id, type: 'function', function: { name, arguments: '' } }),
      fragment({ function: { arguments: input.slice(0, 9) } }),
      fragment({ function: { arguments: input.slice(9) } }),
    ]
  })
  return [
    frames.choice(0, roleDelta),
    ...(text === '' ? [] : [frames.text(0, text)]),
    ...fragments,
    frames.finish(0, calls.length > 0 ? 'tool_calls' : 'stop'),
    frames.usage({ prompt, cached: 0, completion, reasoning: 0 }),
    streamEnd,
  ]
}
