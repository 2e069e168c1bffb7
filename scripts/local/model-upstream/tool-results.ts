import { isRecord, toList, toRecord } from './json-value.ts'

/** The data in a tool result whose first and last lines mark it as data, `<<<word mark` and `mark word>>>`; else all of it. */
export const resultData = (result: string): string =>
  /^<<<(\w+) (\w+)\n([\s\S]*)\n\2 \1>>>/m.exec(result)?.[3] ?? result

/**
 * The lines that a text instructs, as in "one line for each of `tickets`: `id`, `title`", from a result that has such a list of
 * JSON objects. Undefined where nothing of it is instructed or there.
 */
export function instructedLines(instructions: string, result: string): string | undefined {
  const [, list = '', names = ''] =
    /\bone line for each of `(\w+)`: ((?:`\w+`(?:, )?)+)/.exec(instructions) ?? []
  const members = [...names.matchAll(/\w+/g)].map(([name]) => name)
  const items = toList(toRecord(parsed(result))[list]).filter(isRecord)
  if (members.length === 0 || items.length === 0) return undefined
  return items.map((item) => `- ${members.map((name) => String(item[name] ?? '')).join(', ')}`).join('\n')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
