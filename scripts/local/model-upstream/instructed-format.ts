import type { PlanRequest } from './answer-plan.ts'
import { isRecord, type JsonRecord, toList, toRecord, toText } from './json-value.ts'

/** A sentence that requests JSON. Prompts that only mention JSON, such as those of coding agents, request nothing. */
const requestsJson =
  /(?:^|[.!?:\n]\s*)(?:please\s+)?(?:only\s+)?(?:answer|respond|reply|return|output)\b[^.\n]{0,60}\bJSON\b/i

/**
 * The format of the answer that a system prompt requests. A JSON schema at the end of the prompt, after an empty line,
 * defines it.
 * @param system a text or a list of texts and blocks of text
 */
export function instructedFormat(system: unknown): PlanRequest['format'] {
  const text = typeof system === 'string' ? system : toList(system).map(textOf).join('\n')
  if (!requestsJson.test(text)) return { type: 'text' }
  const schema = schemaAtTheEnd(text)
  return schema === undefined ? { type: 'json_object' } : { type: 'json_schema', schema }
}

const textOf = (block: unknown): string => toText(block) || toText(toRecord(block).text)

function schemaAtTheEnd(text: string): JsonRecord | undefined {
  try {
    const schema: unknown = JSON.parse(text.slice(text.indexOf('\n\n{') + 2))
    return isRecord(schema) ? schema : undefined
  } catch {
    return undefined
  }
}
