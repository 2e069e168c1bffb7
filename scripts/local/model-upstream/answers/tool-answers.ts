import { splitIntoPieces } from '../answer-plan.ts'
import { exampleFromSchema } from '../example-from-schema.ts'
import { nextIdentifier } from '../identifiers.ts'
import { type JsonRecord, toRecord } from '../json-value.ts'
import type { ScriptRequest } from '../script-request.ts'
import { issueSignature } from '../signatures.ts'
import { type AnswerScript, answerScript, sayText, toolScript } from './answer-script.ts'
import { type ChatAnswer, textDeltas } from './chat-answer.ts'
import { textBlock, thinkingBlock, toolUseBlock } from './message-answer.ts'

interface Call {
  id: string
  name: string
  input: JsonRecord
}

/** Inputs that a careless hand breaks: escapes, characters of several bytes, nesting, numbers. */
const inputs: JsonRecord[] = [
  { city: 'Zürich 🌧', note: 'a "quoted" line\nand \\ one more', days: [1, 2.5, -3e10] },
  { zone: 'UTC', options: { seconds: true, label: null, empty: {} } },
]
const fallbackNames = ['get_weather', 'get_time']

/** Two calls of the first offered tools; inputs fit a tool's schema if that requires something. */
function twoCalls(request: ScriptRequest): [Call, Call] {
  const call = (index: number): Call => {
    const tool = request.tools[index] ?? request.tools[0]
    const asks = tool !== undefined && Object.keys(toRecord(tool.schema.properties)).length > 0
    return {
      id: nextIdentifier('call_'),
      name: tool?.name ?? fallbackNames[index] ?? '',
      input: asks ? toRecord(exampleFromSchema(tool.schema)) : (inputs[index] ?? {}),
    }
  }
  return [call(0), call(1)]
}

function wholeCall({ id, name, input }: Call): JsonRecord {
  return { id, type: 'function', function: { name, arguments: JSON.stringify(input) } }
}

const callDelta = (fragment: JsonRecord): JsonRecord => ({ tool_calls: [fragment] })

function opened(call: Call, index: number | undefined, text: string): JsonRecord {
  const place = index === undefined ? {} : { index }
  return callDelta({
    ...place,
    id: call.id,
    type: 'function',
    function: { name: call.name, arguments: text },
  })
}

const grown = (index: number, text: string): JsonRecord => callDelta({ index, function: { arguments: text } })

/** Deltas of one call after another, each in several fragments. */
function callDeltas(calls: Call[]): JsonRecord[] {
  return calls.flatMap((call, index) => [
    opened(call, index, ''),
    ...splitIntoPieces(JSON.stringify(call.input)).map((piece) => grown(index, piece)),
  ])
}

function callsAnswer(calls: Call[], deltas: JsonRecord[], text: string | null = null): ChatAnswer {
  return {
    opening: { role: 'assistant', content: null, refusal: null },
    deltas,
    message: { content: text, tool_calls: calls.map(wholeCall) },
    finish: 'tool_calls',
  }
}

const useBlocks = (calls: Call[], fragments?: (input: JsonRecord) => string[]) =>
  calls.map(({ name, input }) => toolUseBlock(name, input, fragments?.(input)))

/** Both calls begin, then their fragments alternate. Blocks of messages never overlap: there they follow each other. */
const parallelTools = toolScript(
  (request) => {
    const calls = twoCalls(request)
    const [first, second] = calls.map((call) => splitIntoPieces(JSON.stringify(call.input)))
    const deltas = calls.map((call, index) => opened(call, index, ''))
    for (let turn = 0; turn < Math.max(first?.length ?? 0, second?.length ?? 0); turn += 1) {
      for (const [index, pieces] of [first, second].entries()) {
        const piece = pieces?.[turn]
        if (piece !== undefined) deltas.push(grown(index, piece))
      }
    }
    return callsAnswer(calls, deltas)
  },
  (request) => ({ content: useBlocks(twoCalls(request)), stopReason: 'tool_use' }),
)

/** Calls without `index`, each whole in one delta, as some servers of the protocol send them. */
const indexlessTools = toolScript(
  (request) => {
    const calls = twoCalls(request)
    return callsAnswer(
      calls,
      calls.map((call) => opened(call, undefined, JSON.stringify(call.input))),
    )
  },
  (request) => ({ content: useBlocks(twoCalls(request)), stopReason: 'tool_use' }),
)

/** The whole input in the fragment that opens the call. */
const wholeArguments = toolScript(
  (request) => {
    const calls = twoCalls(request)
    return callsAnswer(
      calls,
      calls.map((call, index) => opened(call, index, JSON.stringify(call.input))),
    )
  },
  (request) => ({
    content: useBlocks(twoCalls(request), (input) => [JSON.stringify(input)]),
    stopReason: 'tool_use',
  }),
)

/** A call without input: `arguments` is the empty text, or a block without deltas. */
const emptyArguments = toolScript(
  (request) => {
    const call = { ...twoCalls(request)[0], input: {} }
    const whole = { id: call.id, type: 'function', function: { name: call.name, arguments: '' } }
    return { ...callsAnswer([call], [opened(call, 0, '')]), message: { content: null, tool_calls: [whole] } }
  },
  (request) => ({ content: [toolUseBlock(twoCalls(request)[0].name, {}, [])], stopReason: 'tool_use' }),
)

const before = 'I will look it up. '
const after = 'I will tell you when it is done.'

const textBeforeTools = toolScript(
  (request) => {
    const calls = twoCalls(request)
    return callsAnswer(calls, [...textDeltas(splitIntoPieces(before)), ...callDeltas(calls)], before)
  },
  (request) => ({ content: [textBlock(before), ...useBlocks(twoCalls(request))], stopReason: 'tool_use' }),
)

const textAfterTools = toolScript(
  (request) => {
    const [call] = twoCalls(request)
    return callsAnswer([call], [...callDeltas([call]), ...textDeltas(splitIntoPieces(after))], after)
  },
  (request) => ({
    content: [...useBlocks([twoCalls(request)[0]]), textBlock(after)],
    stopReason: 'tool_use',
  }),
)

/** Thinking, text, more thinking, then a call, as from a model that thinks between its steps. */
const thinkingTools = toolScript(
  (request) => {
    const [call] = twoCalls(request)
    const thoughts = textDeltas(splitIntoPieces('First I need the facts.'), 'reasoning_content')
    const answer = callsAnswer(
      [call],
      [...thoughts, ...textDeltas(splitIntoPieces(before)), ...callDeltas([call])],
    )
    const message = { ...answer.message, content: before, reasoning_content: 'First I need the facts.' }
    return { ...answer, message, usage: { reasoning: 5 } }
  },
  (request) => {
    const think = (text: string) => thinkingBlock(text, issueSignature(text, nextIdentifier('seed')))
    const [call] = twoCalls(request)
    return {
      content: [
        think('First I need the facts.'),
        textBlock(before),
        think('This tool knows them.'),
        ...useBlocks([call]),
      ],
      stopReason: 'tool_use',
      usage: { thinking: 5 },
    }
  },
)

/** The older form, with `function_call` instead of `tool_calls`; on messages an ordinary call. */
const functionCall = toolScript(
  (request) => {
    const [{ name, input }] = twoCalls(request)
    const text = JSON.stringify(input)
    const pieces = splitIntoPieces(text).map((piece) => ({ function_call: { arguments: piece } }))
    return {
      opening: { role: 'assistant', content: null, function_call: { name, arguments: '' } },
      deltas: pieces,
      message: { content: null, function_call: { name, arguments: text } },
      finish: 'function_call',
    }
  },
  (request) => ({ content: useBlocks([twoCalls(request)[0]]), stopReason: 'tool_use' }),
)

/** Out of tokens within the input of a call: what has come of it is not JSON. */
const cutArguments = answerScript(
  (request) => {
    const [call] = twoCalls(request)
    const half = JSON.stringify(call.input).slice(0, 8)
    const whole = { id: call.id, type: 'function', function: { name: call.name, arguments: half } }
    return {
      ...callsAnswer([call], [opened(call, 0, ''), grown(0, half)]),
      message: { content: null, tool_calls: [whole] },
      finish: 'length',
    }
  },
  (request) => {
    const [{ name, input }] = twoCalls(request)
    const block = toolUseBlock(name, {}, ['', JSON.stringify(input).slice(0, 8)])
    return { content: [block], stopReason: 'max_tokens' }
  },
)

/**
 * Calls one tool, `tool=NAME arguments={…}` (JSON, braces and all), and once its result is there ends with a text that
 * quotes it. A tool that is not on offer, such as in the side questions of coding agents, is reported in text.
 */
function callTool(request: ScriptRequest) {
  const name = request.word('tool') ?? ''
  const input = jsonAfter(request.text, 'arguments=') ?? {}
  if (!request.tools.some((tool) => tool.name === name)) {
    return sayText(request, `There is no tool ${JSON.stringify(name)} that I could call.`)
  }
  const call = { id: nextIdentifier('call_'), name, input }
  return toolScript(
    () => callsAnswer([call], callDeltas([call])),
    () => ({ content: useBlocks([call]), stopReason: 'tool_use' }),
  )(request)
}

/** The JSON object that follows `marker` in a text, whatever comes after it. */
function jsonAfter(text: string, marker: string): JsonRecord | undefined {
  const start = text.indexOf(`${marker}{`)
  if (start < 0) return undefined
  const rest = text.slice(start + marker.length)
  for (let end = rest.indexOf('}'); end >= 0; end = rest.indexOf('}', end + 1)) {
    try {
      return toRecord(JSON.parse(rest.slice(0, end + 1)))
    } catch {
      // A brace within the object: its end comes later.
    }
  }
  return undefined
}

/** Scripts about tool calls, by name. */
export const toolAnswers: [string, AnswerScript][] = [
  ['parallel-tools', parallelTools],
  ['indexless-tools', indexlessTools],
  ['whole-arguments', wholeArguments],
  ['empty-arguments', emptyArguments],
  ['cut-arguments', cutArguments],
  ['text-before-tools', textBeforeTools],
  ['text-after-tools', textAfterTools],
  ['thinking-tools', thinkingTools],
  ['function-call', functionCall],
  ['call-tool', callTool],
]
