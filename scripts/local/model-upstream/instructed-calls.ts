import type { PlannedToolCall, RequestTool } from './answer-plan.ts'
import { exampleFromSchema } from './example-from-schema.ts'
import { toRecord } from './json-value.ts'

/**
 * The calls that a text instructs in so many words: each offered tool that it names as in "call `write_file`", in the order of
 * the text. Lines `name: value` after it are its arguments, up to the next such call. A text as the last of them ends with the
 * whole text, so that it can have several lines:
 *
 *     Call `write_file` with these arguments.
 *     path: report.md
 *     content: # Report
 *     …
 */
export function instructedCalls(text: string, tools: readonly RequestTool[]): PlannedToolCall[] {
  const mentions = [...text.matchAll(/\bcall `([\w.-]+)`/gi)]
  return mentions.flatMap(({ 1: name, index }, at) => {
    const tool = tools.find((each) => each.name === name)
    if (tool === undefined) return []
    const { name: called, kind, schema } = tool
    const rest = text.slice(index, mentions[at + 1]?.index)
    const input = kind === 'custom' ? afterFirstLine(rest) : JSON.stringify(argumentsIn(rest, schema))
    return [{ name: called, kind, input }]
  })
}

const afterFirstLine = (text: string): string => text.slice(text.indexOf('\n') + 1)

/** An example of the schema, with the members that the text has. */
function argumentsIn(text: string, schema: unknown): Record<string, unknown> {
  const properties = toRecord(toRecord(schema).properties)
  const lines = [...text.matchAll(/^([\w-]+):[ \t]*/gm)].filter(({ 1: name = '' }) =>
    Object.hasOwn(properties, name),
  )
  const given = lines.map(({ 0: label, 1: name = '', index }, at) => {
    const rest = text.slice(index + label.length)
    const isLast = at === lines.length - 1
    return [name, argumentValue(rest, isLast, properties[name])] as const
  })
  return { ...toRecord(exampleFromSchema(schema ?? { type: 'object' })), ...Object.fromEntries(given) }
}

/** A value is text where the schema takes text, and otherwise JSON on one line. */
function argumentValue(rest: string, isLast: boolean, schema: unknown): unknown {
  const line = (rest.split('\n', 1)[0] ?? '').trimEnd()
  if (typeof exampleFromSchema(schema) === 'string') return isLast ? rest.trimEnd() : line
  try {
    return JSON.parse(line)
  } catch {
    return line
  }
}
