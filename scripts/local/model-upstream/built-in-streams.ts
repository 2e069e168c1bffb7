import { splitIntoPieces } from './answer-plan.ts'
import { messageFrame } from './message-frames.ts'
import { jsonReply, vendorStreamHeaders } from './reply.ts'
import type { ScriptRequest } from './script-request.ts'
import type { Step } from './script-steps.ts'
import { createStreamFrames, type StreamFrames, wholeAnswerAround } from './stream-frames.ts'

type StreamScript = (request: ScriptRequest) => Iterable<Step>

const pieces = splitIntoPieces('This is the scripted answer, with an é and a 🦉.')
const fewPieces = pieces.slice(0, 3)

/** The plain answer as one JSON body: the answer of a stream script if no stream was requested. */
export function wholeAnswer(request: ScriptRequest, text = pieces.join('')): Step {
  const [before, after] = wholeAnswerAround(request, pieces.length)
  const body = before + JSON.stringify(text).slice(1, -1) + after
  return { status: 200, headers: jsonReply(request.dialect, 200, '').headers, body }
}

/** All frames of a plain streamed answer. */
export function plainFrames(frames: StreamFrames, text: readonly string[] = pieces): string[] {
  return [...frames.opening, ...text.map(frames.text), ...frames.finish(text.length), frames.end]
}

/** A script for streams; a request without `stream` gets the plain answer whole. */
function streamed(play: (frames: StreamFrames, request: ScriptRequest) => Iterable<Step>): StreamScript {
  return function* (request) {
    if (!request.stream) {
      yield wholeAnswer(request)
      return
    }
    yield { status: 200, headers: vendorStreamHeaders(request.dialect) }
    yield* play(createStreamFrames(request), request)
  }
}

/** The beginning of the answer, streamed or not. */
function* halfAnswer(request: ScriptRequest, frames: StreamFrames): Iterable<Step> {
  if (request.stream) {
    yield { status: 200, headers: vendorStreamHeaders(request.dialect) }
    yield { sse: [...frames.opening, ...fewPieces.map(frames.text)] }
  } else {
    yield { status: 200, headers: jsonReply(request.dialect, 200, '').headers }
    yield { chunk: wholeAnswerAround(request, pieces.length)[0] + fewPieces.join('') }
  }
}

/** A script that begins the answer and then does `ending` instead of the rest. */
function cutShort(ending: Step): StreamScript {
  return function* (request) {
    yield* halfAnswer(request, createStreamFrames(request))
    yield ending
  }
}

/** Waits for the signal given as `signal=NAME`, or for ever. */
function pause(request: ScriptRequest): Step {
  const signal = request.word('signal')
  return signal === undefined ? { silent: true } : { waitForSignal: signal }
}

function* slowHeaders(request: ScriptRequest): Iterable<Step> {
  const signal = request.word('signal')
  yield signal === undefined ? { waitMilliseconds: request.count('delay', 2000) } : { waitForSignal: signal }
  if (!request.stream) yield wholeAnswer(request)
  else yield { sse: plainFrames(createStreamFrames(request)) }
}

function* firstEventError(request: ScriptRequest): Iterable<Step> {
  const frames = createStreamFrames(request)
  if (request.stream) {
    yield { status: 200, headers: vendorStreamHeaders(request.dialect) }
    yield { sse: [frames.error] }
    return
  }
  const body = /^data: (.*)$/m.exec(frames.error)?.[1] ?? ''
  yield { status: 200, headers: jsonReply(request.dialect, 200, '').headers, body }
}

/** Half an answer, then nothing; with `signal=NAME` the rest follows after the signal. */
function* stall(request: ScriptRequest): Iterable<Step> {
  const frames = createStreamFrames(request)
  yield* halfAnswer(request, frames)
  yield pause(request)
  const rest = pieces.slice(fewPieces.length)
  if (request.stream) yield { sse: [...rest.map(frames.text), ...frames.finish(pieces.length), frames.end] }
  else yield { chunk: rest.join('') + wholeAnswerAround(request, pieces.length)[1] }
}

/** `tokens=N` words, `delay=MS` apart; without delay as fast as the client reads. */
function* longStream(frames: StreamFrames, request: ScriptRequest): Iterable<Step> {
  const tokens = request.count('tokens', 100)
  const delay = request.count('delay', 0)
  const frame = Buffer.from(frames.text(' word'))
  for (const opening of frames.opening) yield { bytes: opening, events: 1 }
  for (let token = 0; token < tokens; token += 1) {
    if (delay > 0) yield { waitMilliseconds: delay }
    yield { bytes: frame, events: 1 }
  }
  yield { sse: [...frames.finish(tokens), frames.end] }
}

/** Frames of about 1 KB, sixteen to a write, until `bytes=N` are written. */
function* flood(frames: StreamFrames, request: ScriptRequest): Iterable<Step> {
  const wanted = request.count('bytes', 16 * 1024 * 1024)
  const batch = Buffer.from(frames.text(' flood'.repeat(160)).repeat(16))
  for (const opening of frames.opening) yield { bytes: opening, events: 1 }
  for (let written = 0; written < wanted; written += batch.length) yield { bytes: batch, events: 16 }
  yield { sse: [...frames.finish(160), frames.end] }
}

/** An answer text of `bytes=N`: whole with its length declared, or streamed in deltas of 16 KB. */
function* largeAnswer(request: ScriptRequest): Iterable<Step> {
  const wanted = request.count('bytes', 1024 * 1024)
  const part = Buffer.from('large answer '.repeat(1261).slice(0, 16_384))
  if (request.stream) {
    const frames = createStreamFrames(request)
    const frame = Buffer.from(frames.text(part.toString()))
    yield { status: 200, headers: vendorStreamHeaders(request.dialect) }
    for (const opening of frames.opening) yield { bytes: opening, events: 1 }
    let left = wanted
    for (; left >= part.length; left -= part.length) yield { bytes: frame, events: 1 }
    if (left > 0) yield { bytes: frames.text(part.toString('utf8', 0, left)), events: 1 }
    yield { sse: [...frames.finish(Math.ceil(wanted / 4)), frames.end] }
    return
  }
  const [before, after] = wholeAnswerAround(request, Math.ceil(wanted / 4))
  const length = String(Buffer.byteLength(before) + wanted + Buffer.byteLength(after))
  yield { status: 200, headers: { ...jsonReply(request.dialect, 200, '').headers, 'content-length': length } }
  yield { bytes: before, events: 0 }
  for (let left = wanted; left > 0; left -= part.length) {
    yield { bytes: left >= part.length ? part : part.subarray(0, left), events: 0 }
  }
  yield { bytes: after, events: 0 }
}

/** Every byte a write of its own, also inside characters of several bytes. */
function* splitFrames(frames: StreamFrames): Iterable<Step> {
  for (const byte of Buffer.from(plainFrames(frames).join(''))) {
    yield { chunkBase64: Buffer.of(byte).toString('base64') }
  }
}

/** Lines end with CR LF; one frame is split between the two. */
function* crlf(frames: StreamFrames): Iterable<Step> {
  const [first = '', ...rest] = plainFrames(frames).map((frame) => frame.replaceAll('\n', '\r\n'))
  yield { chunk: first.slice(0, -1) }
  yield { chunk: first.slice(-1) }
  yield { sse: rest }
}

/** Legal but unusual forms: unknown members, odd number and string forms, comments, unknown events. */
function* unknownFields(frames: StreamFrames, request: ScriptRequest): Iterable<Step> {
  const extra =
    '"x_big":12345678901234567890,"x_float":1.0,"x_escaped":"\\u00e9\\/","x_nested":{"a":[1,null]}'
  const mark = (frame: string): string =>
    frame.replace('data: {', `data: {"obfuscation":"aZ3","x_first":true,${extra},`)
  const delta = (frame: string): string => mark(frame).replace(/"delta":\{/, `"delta":{"x_delta":"kept",`)
  yield { sse: [': a comment\n\n', 'retry: 3000\nid: 7\n\n'] }
  yield { sse: frames.opening.map(mark) }
  if (request.dialect === 'messages') {
    yield { sse: [messageFrame('vendor_notice', extra)] }
    yield { sse: [messageFrame('content_block_delta', `"index":0,"delta":{"type":"vendor_delta",${extra}}`)] }
  } else {
    yield { sse: [mark('event: vendor.notice\ndata: {"object":"vendor.notice","choices":[]}\n\n')] }
  }
  yield {
    sse: [
      ...pieces.map((piece) => delta(frames.text(piece))),
      ...frames.finish(pieces.length).map(mark),
      frames.end,
    ],
  }
}

/** Usage where some providers put it: on the chunk that finishes (chat), or output tokens alone (messages). */
function* usageOnLastChunk(frames: StreamFrames, request: ScriptRequest): Iterable<Step> {
  yield { sse: [...frames.opening, ...pieces.map(frames.text)] }
  const [finish = '', second = ''] = frames.finish(pieces.length)
  if (request.dialect === 'messages') {
    yield { sse: [finish, second.replace(/"usage":\{.*\}\}/, `"usage":{"output_tokens":${pieces.length}}}`)] }
  } else {
    const prompt = request.promptTokens
    const usage = `"usage":{"prompt_tokens":${prompt},"completion_tokens":${pieces.length},"total_tokens":${prompt + pieces.length}}`
    yield { sse: [`${finish.trimEnd().replace(/,"usage":null\}$|\}$/, '')},${usage}}\n\n`] }
  }
  yield { sse: [frames.end] }
}

function* pingOnly(frames: StreamFrames): Iterable<Step> {
  yield { sse: [frames.keepAlive, frames.keepAlive, frames.keepAlive] }
  yield { silent: true }
}

/** JSON inside a Markdown fence, as models without JSON mode write it. */
function fencedJson(request: ScriptRequest): Iterable<Step> {
  const text = '```json\n{"answer": "fenced", "count": 3}\n```'
  if (!request.stream) return [wholeAnswer(request, text)]
  const parts = ['``', '`js', 'on\n', '{"answer"', ': "fenced",', ' "count": 3}', '\n`', '``']
  return [
    { status: 200, headers: vendorStreamHeaders(request.dialect) },
    { sse: plainFrames(createStreamFrames(request), parts) },
  ]
}

/** A refusal: `delta.refusal` or `message.refusal` on chat, `stop_reason: refusal` on messages. */
function refusal(request: ScriptRequest): Iterable<Step> {
  const replaceEnd = (text: string): string =>
    text
      .replace('"stop_reason":"end_turn"', '"stop_reason":"refusal"')
      .replace('"stop_details":null', '"stop_details":{"type":"refusal","category":null,"explanation":"No."}')
  const replaceText = (text: string): string =>
    request.dialect === 'chat'
      ? text
          .replace('"delta":{"content":', '"delta":{"refusal":')
          .replace('"content":"No.","refusal":null', '"content":null,"refusal":"No."')
      : text
  if (!request.stream) {
    const step = wholeAnswer(request, 'No.')
    return [step].map((whole) =>
      'body' in whole ? { ...whole, body: replaceText(replaceEnd(whole.body ?? '')) } : whole,
    )
  }
  const frames = createStreamFrames(request)
  const finish = frames.finish(1).map(replaceEnd)
  return [
    { status: 200, headers: vendorStreamHeaders(request.dialect) },
    { sse: [...frames.opening, replaceText(frames.text('No.')), ...finish, frames.end] },
  ]
}

/** Scripts about the shape and the timing of a stream, by name. */
export const streamScripts: [string, StreamScript][] = [
  [
    'canned',
    streamed((frames) => {
      const all = plainFrames(frames)
      return [{ bytes: all.join(''), events: all.length }]
    }),
  ],
  [
    'empty-stream',
    (request) => [{ status: 200, headers: vendorStreamHeaders(request.dialect) }, { end: true }],
  ],
  [
    'silent-stream',
    (request) => [{ status: 200, headers: vendorStreamHeaders(request.dialect) }, pause(request)],
  ],
  ['slow-headers', slowHeaders],
  ['first-event-error', firstEventError],
  [
    'mid-stream-error',
    streamed((frames) => [{ sse: [...frames.opening, ...fewPieces.map(frames.text), frames.error] }]),
  ],
  ['mid-stream-cut', cutShort({ destroy: true })],
  ['mid-stream-end', cutShort({ end: true })],
  ['stall', stall],
  ['ping-only', streamed(pingOnly)],
  ['no-done', streamed((frames) => [{ sse: plainFrames(frames).slice(0, -1) }])],
  ['long-stream', streamed(longStream)],
  ['flood', streamed(flood)],
  ['large-answer', largeAnswer],
  [
    'large-frame',
    streamed((frames, request) => [
      { sse: plainFrames(frames, ['x'.repeat(request.count('bytes', 1024 * 1024))]) },
    ]),
  ],
  ['unknown-fields', streamed(unknownFields)],
  ['split-frames', streamed(splitFrames)],
  ['crlf', streamed(crlf)],
  ['usage-on-last-chunk', streamed(usageOnLastChunk)],
  ['fenced-json', fencedJson],
  ['refusal', refusal],
]
