import type { Turn } from './answer-plan.ts'
import { isRecord, type JsonRecord, toList, toRecord, toText } from './json-value.ts'

/** A sentence that asks for JSON. Prompts that only speak of JSON, such as those of coding agents, ask for nothing. */
const asksForJson =
  /(?:^|[.!?:\n]\s*)(?:please\s+)?(?:only\s+)?(?:answer|respond|reply|return|output)\b[^.\n]{0,60}\bJSON\b/i

/**
 * What a system prompt asks the answer to be: models do as they are told. A JSON schema that ends the prompt, after an
 * empty line, is kept to.
 * @param system a text or a list of texts and blocks of text
 */
export function instructedFormat(system: unknown): Turn['format'] {
  const text = typeof system === 'string' ? system : toList(system).map(textOf).join('\n')
  if (!asksForJson.test(text)) return { type: 'text' }
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
