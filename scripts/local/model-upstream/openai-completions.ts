import { fitText } from './answer-plan.ts'
import { nextIdentifier, nowInSeconds } from './identifiers.ts'
import {
  countCharacters,
  type JsonRecord,
  tokensOfCharacters,
  toList,
  toNumber,
  toRecord,
  toText,
} from './json-value.ts'
import { jsonReply, type Reply, streamReply } from './reply.ts'

/** Default of `max_tokens`, which chat completions do not have. */
const defaultMaximumTokens = 16

interface CompletionChoice {
  index: number
  pieces: string[]
  finishReason: 'stop' | 'length'
}

/**
 * Answers a checked legacy `POST /v1/completions`, streamed when `stream` is true: one choice per prompt and `n`.
 * Shape: https://platform.openai.com/docs/api-reference/completions/object
 */
export function answerCompletion(body: JsonRecord): Reply {
  const choices = readPrompts(body.prompt).flatMap((prompt, promptIndex) =>
    choicesOfPrompt(body, prompt, promptIndex),
  )
  const prompt = tokensOfCharacters(countCharacters(body.prompt))
  const completion = choices.reduce((sum, choice) => sum + choice.pieces.length, 0)
  const usage = `{"prompt_tokens":${prompt},"completion_tokens":${completion},"total_tokens":${prompt + completion}}`
  return body.stream === true ? streamChoices(body, choices, usage) : wholeChoices(body, choices, usage)
}

/** `prompt` is a text, a list of texts, a list of token ids, or a list of such lists. */
function readPrompts(prompt: unknown): string[] {
  if (!Array.isArray(prompt)) return [toText(prompt)]
  if (prompt.every((item) => typeof item === 'number')) return [`${prompt.length} tokens`]
  return prompt.map((item) => (Array.isArray(item) ? `${item.length} tokens` : toText(item)))
}

function choicesOfPrompt(body: JsonRecord, prompt: string, promptIndex: number): CompletionChoice[] {
  const count = Math.min(Math.max(1, toNumber(body.n) ?? 1), 128)
  const stops = typeof body.stop === 'string' ? [body.stop] : toList(body.stop).map((stop) => toText(stop))
  const text = ` continues here. You wrote: "${prompt.slice(0, 400)}". This answer comes from the local model.`
  const fitted = fitText(text, stops, toNumber(body.max_tokens) ?? defaultMaximumTokens)
  return Array.from({ length: count }, (_, index) => ({
    index: promptIndex * count + index,
    pieces: body.echo === true ? [prompt, ...fitted.pieces] : fitted.pieces,
    finishReason: fitted.end === 'length' ? 'length' : 'stop',
  }))
}

function wholeChoices(body: JsonRecord, choices: CompletionChoice[], usage: string): Reply {
  const list = choices.map(({ index, pieces, finishReason }) => ({
    text: pieces.join(''),
    index,
    logprobs: logprobsOf(body, pieces),
    finish_reason: finishReason,
  }))
  return jsonReply(
    'completions',
    200,
    `${completionHead(body)}"choices":${JSON.stringify(list)},"usage":${usage}}`,
  )
}

function streamChoices(body: JsonRecord, choices: CompletionChoice[], usage: string): Reply {
  const includeUsage = toRecord(body.stream_options).include_usage === true
  const head = `data: ${completionHead(body)}"choices":[`
  const tail = includeUsage ? '],"usage":null}\n\n' : ']}\n\n'
  const frames: string[] = []
  const longest = Math.max(...choices.map((choice) => choice.pieces.length))
  for (let position = 0; position < longest; position += 1) {
    for (const { index, pieces } of choices) {
      const piece = pieces[position]
      if (piece === undefined) continue
      const choice = { text: piece, index, logprobs: logprobsOf(body, [piece]), finish_reason: null }
      frames.push(head + JSON.stringify(choice) + tail)
    }
  }
  for (const { index, finishReason } of choices) {
    frames.push(
      head + JSON.stringify({ text: '', index, logprobs: null, finish_reason: finishReason }) + tail,
    )
  }
  if (includeUsage) frames.push(`${head}],"usage":${usage}}\n\n`)
  frames.push('data: [DONE]\n\n')
  return streamReply('completions', frames)
}

function completionHead(body: JsonRecord): string {
  return (
    `{"id":"${nextIdentifier('cmpl-')}","object":"text_completion","created":${nowInSeconds()},` +
    `"model":${JSON.stringify(body.model)},`
  )
}

/** Here `logprobs` is a number, and the answer lists tokens side by side instead of one object per token. */
function logprobsOf(body: JsonRecord, pieces: string[]): JsonRecord | null {
  const alternatives = toNumber(body.logprobs)
  if (alternatives === undefined) return null
  let offset = 0
  const offsets = pieces.map((piece) => {
    offset += piece.length
    return offset - piece.length
  })
  return {
    tokens: pieces,
    token_logprobs: pieces.map(() => -0.01),
    top_logprobs: alternatives === 0 ? null : pieces.map((piece) => ({ [piece]: -0.01 })),
    text_offset: offsets,
  }
}
