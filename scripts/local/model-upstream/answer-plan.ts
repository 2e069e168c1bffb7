import { exampleFromSchema } from './example-from-schema.ts'
import { instructedCalls } from './instructed-calls.ts'
import { scriptedVerdict } from './scripted-verdict.ts'
import { instructedLines, resultData } from './tool-results.ts'

export interface RequestTool {
  name: string
  /** `custom` is OpenAI's free-text tool; everything else takes JSON arguments. */
  kind: 'function' | 'custom'
  schema: unknown
}

export type ToolChoice = { mode: 'auto' | 'none' | 'required' } | { mode: 'named'; name: string }

/** Parts of a request on which the answer depends, independent of the protocol. */
export interface PlanRequest {
  /** Text of the last message when a user wrote it, else empty. */
  userText: string
  /** Text of the last message of the user that has one: what a tool result belongs to. */
  instructions: string
  /** Text of the last tool result, when the last message carries one. */
  toolResult: string | undefined
  tools: RequestTool[]
  choice: ToolChoice
  parallelToolCalls: boolean
  /** The format of the answer: prose, any JSON object, or JSON that satisfies `schema`. */
  format: { type: 'text' | 'json_object' } | { type: 'json_schema'; schema: unknown }
}

export interface PlannedToolCall {
  name: string
  kind: 'function' | 'custom'
  /** JSON text of the arguments, or the free text of a custom tool. */
  input: string
}

export interface AnswerPlan {
  text: string
  calls: PlannedToolCall[]
}

const echoLimit = 400

/**
 * Decides the default answer, the same for the same turn:
 * - tool calls, if the choice forces them, or the user's text instructs them ("Call `read_file`", see `instructedCalls`),
 *   contains the word "tool" ("every tool" calls each once) or the subject of a tool's name ("How is the weather?" calls
 *   `get_weather`)
 * - a verdict for the judge of agents, and else JSON, if a format requests it
 * - else lines from the tool result, if the user's text instructs them ("one line for each of `tickets`: `title`"), or a
 *   sentence that quotes the tool result or the user
 */
export function planAnswer(turn: PlanRequest): AnswerPlan {
  const calls = planCalls(turn)
  if (calls.length > 0) return { text: '', calls }
  return { text: planText(turn), calls: [] }
}

function planCalls(turn: PlanRequest): PlannedToolCall[] {
  const { choice } = turn
  const first = turn.tools[0]
  if (first === undefined || choice.mode === 'none') return []
  if (choice.mode === 'named') {
    const named = turn.tools.find((tool) => tool.name === choice.name)
    return named === undefined ? [] : [callOf(named)]
  }
  if (turn.toolResult === undefined && turn.parallelToolCalls && /\bevery tool\b/i.test(turn.userText)) {
    return turn.tools.map(callOf)
  }
  const instructed = turn.toolResult === undefined ? instructedCalls(turn.userText, turn.tools) : []
  const meant =
    turn.toolResult === undefined ? turn.tools.filter(({ name }) => speaksOf(turn.userText, name)) : []
  const calls = instructed.length > 0 ? instructed : meant.map(callOf)
  if (calls.length > 0) return turn.parallelToolCalls ? calls : calls.slice(0, 1)
  const invited = turn.toolResult === undefined && /\btools?\b/i.test(turn.userText)
  return choice.mode === 'required' || invited ? [callOf(first)] : []
}

/** Words of tool names that are verbs, or too common in prose. */
const commonWords =
  /^(tools?|call|make|with|from|find|list|read|write|send|show|take|look|lookup|fetch|search|query|create|update|delete|remove|check|compute|retrieve|current|user|text|name)$/

/**
 * Whether a text has a word of a tool's name, such as `weather` of `get_weather` and `getWeather`. Names of one word
 * and names that begin with a capital do not count: tools of coding agents have such names.
 */
function speaksOf(text: string, tool: string): boolean {
  if (!/^[a-z]/.test(tool)) return false
  const words = tool
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z]+/)
  if (words.length < 2) return false
  const textWords = new Set(text.toLowerCase().match(/[a-z]+/g))
  return words.some((word) => word.length >= 4 && !commonWords.test(word) && textWords.has(word))
}

function callOf(tool: RequestTool): PlannedToolCall {
  const input =
    tool.kind === 'custom' ? 'example' : JSON.stringify(exampleFromSchema(tool.schema ?? { type: 'object' }))
  return { name: tool.name, kind: tool.kind, input }
}

function planText(turn: PlanRequest): string {
  if (turn.format.type === 'json_schema') {
    return JSON.stringify(scriptedVerdict(turn.userText) ?? exampleFromSchema(turn.format.schema))
  }
  const result = turn.toolResult === undefined ? undefined : resultData(turn.toolResult)
  const quoted = excerpt(result ?? turn.userText)
  if (turn.format.type === 'json_object') return JSON.stringify({ answer: quoted })
  if (result !== undefined) {
    const lines = instructedLines(turn.instructions, result)
    return lines ?? `The tool answered: "${quoted}". That is all I needed to know.`
  }
  return `Hello! You said: "${quoted}". This answer comes from the local model, so no provider was called.`
}

function excerpt(text: string): string {
  // Cut by code point: half of a surrogate pair would not survive UTF-8.
  return text.length <= echoLimit ? text : `${[...text.slice(0, echoLimit)].slice(0, -1).join('')}…`
}

export interface FittedText {
  /** The text in pieces, one per output token: a word with the space before it. */
  pieces: string[]
  end: 'natural' | 'length' | 'stop_sequence'
  stopSequence: string | null
}

/** Cuts `text` before the first of `stops` that occurs in it, then after `maximumTokens` pieces. */
export function fitText(text: string, stops: string[], maximumTokens: number): FittedText {
  let cut = text.length
  let stopSequence: string | null = null
  for (const stop of stops) {
    const index = stop === '' ? -1 : text.indexOf(stop)
    if (index >= 0 && index < cut) {
      cut = index
      stopSequence = stop
    }
  }
  const pieces = splitIntoPieces(text.slice(0, cut))
  if (pieces.length > maximumTokens) {
    return { pieces: pieces.slice(0, Math.max(0, maximumTokens)), end: 'length', stopSequence: null }
  }
  return { pieces, end: stopSequence === null ? 'natural' : 'stop_sequence', stopSequence }
}

/** Splits a text into pieces of at most a word (12 characters), none of them cutting a code point in two. */
export function splitIntoPieces(text: string): string[] {
  return text.match(/\s*\S{1,12}|\s+$/gu) ?? []
}
