import { chatUsageJson, createChatFrames, roleDelta, streamEnd } from './chat-frames.ts'
import { nextIdentifier, nowInSeconds } from './identifiers.ts'
import {
  blockDeltaFrame,
  blockStartFrame,
  blockStopFrame,
  type MessagesUsage,
  messageDeltaFrame,
  messageFrame,
  messageStartFrame,
  messageStopFrame,
  messageUsageJson,
  pingFrame,
} from './message-frames.ts'
import type { ScriptRequest } from './script-request.ts'
import { openAiErrorBody } from './vendor-errors.ts'

/** The frames of one plain text stream in the request's dialect, for scripts that break it somewhere. */
export interface StreamFrames {
  /** Everything before the first text. */
  opening: string[]
  text(piece: string): string
  /** The stop reason and, if requested, the usage; not yet the end. */
  finish(outputTokens: number): string[]
  /** `[DONE]` or `message_stop`. */
  end: string
  /** The vendor's error inside a stream. */
  error: string
  /** The frame with which the vendor keeps a silent stream alive. */
  keepAlive: string
}

/** Makes the frames for the request's dialect and model. */
export function createStreamFrames(request: ScriptRequest): StreamFrames {
  if (request.dialect === 'messages') return messageStream(request)
  return request.dialect === 'chat' ? chatStream(request) : completionStream(request)
}

const openAiStreamError = `data: ${openAiErrorBody({
  message: 'The server had an error while processing your request. Sorry about that!',
  type: 'server_error',
})}\n\n`

function chatStream(request: ScriptRequest): StreamFrames {
  const frames = createChatFrames(request.model, request.includeUsage)
  return {
    opening: [frames.choice(0, roleDelta)],
    text: (piece) => frames.text(0, piece),
    finish: (completion) => {
      const usage = frames.usage({ prompt: request.promptTokens, cached: 0, completion, reasoning: 0 })
      return request.includeUsage ? [frames.finish(0, 'stop'), usage] : [frames.finish(0, 'stop')]
    },
    end: streamEnd,
    error: openAiStreamError,
    keepAlive: ': keep-alive\n\n',
  }
}

function completionStream(request: ScriptRequest): StreamFrames {
  const head =
    `data: {"id":"${nextIdentifier('cmpl-')}","object":"text_completion","created":${nowInSeconds()},` +
    `"model":${JSON.stringify(request.model)},"choices":[`
  const tail = request.includeUsage ? '],"usage":null}\n\n' : ']}\n\n'
  const chunk = (text: string, reason: string | null): string =>
    head + JSON.stringify({ text, index: 0, logprobs: null, finish_reason: reason }) + tail
  return {
    opening: [],
    text: (piece) => chunk(piece, null),
    finish: (completion) => {
      const usage = chatUsageJson({ prompt: request.promptTokens, cached: 0, completion, reasoning: 0 })
      return request.includeUsage
        ? [chunk('', 'stop'), `${head}],"usage":${usage}}\n\n`]
        : [chunk('', 'stop')]
    },
    end: streamEnd,
    error: openAiStreamError,
    keepAlive: ': keep-alive\n\n',
  }
}

function plainUsage(request: ScriptRequest, output: number): MessagesUsage {
  return { input: request.promptTokens, created5m: 0, created1h: 0, read: 0, output, thinking: 0 }
}

function messageStream(request: ScriptRequest): StreamFrames {
  return {
    opening: [
      messageStartFrame(nextIdentifier('msg_'), request.model, plainUsage(request, 1)),
      blockStartFrame(0, '{"type":"text","text":""}'),
      pingFrame,
    ],
    text: (piece) => blockDeltaFrame(0, 'text_delta', 'text', piece),
    finish: (output) => [blockStopFrame(0), messageDeltaFrame('end_turn', null, plainUsage(request, output))],
    end: messageStopFrame,
    error: messageFrame(
      'error',
      '"error":{"type":"overloaded_error","message":"Overloaded"},"request_id":null',
    ),
    keepAlive: pingFrame,
  }
}

/**
 * The JSON text of a whole plain answer, cut at its text: `[before, after]` around the content of the JSON string.
 * `completion` is the output token count it reports.
 */
export function wholeAnswerAround(request: ScriptRequest, completion: number): [string, string] {
  const model = JSON.stringify(request.model)
  if (request.dialect === 'messages') {
    return [
      `{"id":"${nextIdentifier('msg_')}","type":"message","role":"assistant","model":${model},"content":[{"type":"text","text":"`,
      '"}],"stop_reason":"end_turn","stop_sequence":null,"stop_details":null,"container":null,' +
        `"usage":${messageUsageJson(plainUsage(request, completion))}}`,
    ]
  }
  const usage = chatUsageJson({ prompt: request.promptTokens, cached: 0, completion, reasoning: 0 })
  const after = `"logprobs":null,"finish_reason":"stop"}],"usage":${usage}}`
  if (request.dialect === 'completions') {
    return [
      `{"id":"${nextIdentifier('cmpl-')}","object":"text_completion","created":${nowInSeconds()},"model":${model},"choices":[{"index":0,"text":"`,
      `",${after}`,
    ]
  }
  return [
    `{"id":"${nextIdentifier('chatcmpl-')}","object":"chat.completion","created":${nowInSeconds()},"model":${model},` +
      '"service_tier":"default","system_fingerprint":"fp_local","choices":[{"index":0,"message":{"role":"assistant","content":"',
    `","refusal":null,"annotations":[]},${after}`,
  ]
}
