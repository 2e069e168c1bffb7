import type { Json } from '../../protocols/json.ts'

/**
 * Translations of the tools of this service, which nearly every turn of a response repeats: each definition is translated to
 * a protocol and serialized once for each isolate. They are kept by their source, an object that does not change.
 */
export class KeptTools {
  readonly #translate: (source: Json) => Json
  readonly #made = new WeakMap<Json, Json>()

  constructor(translate: (source: Json) => Json) {
    this.#translate = translate
  }

  of(source: Json): Json {
    const known = this.#made.get(source)
    if (known) return known
    const made = this.#translate(source)
    this.#made.set(source, made)
    texts.set(made, JSON.stringify(made))
    return made
  }
}

/** JSON of the translations that are kept. */
const texts = new WeakMap<object, string>()

/** Whether a translated tool is kept, so that what is made of it can be, too. */
export const isKept = (tool: Json): boolean => texts.has(tool)

/** `JSON.stringify` of a request, with the text of each tool that is kept. */
export function requestJson(body: Json): string {
  const { tools } = body
  if (!Array.isArray(tools) || !tools.some((tool) => texts.has(tool))) return JSON.stringify(body)
  const members = Object.entries(body).flatMap(([name, value]) => {
    const json = value === tools ? listJson(tools) : JSON.stringify(value)
    return json === undefined ? [] : `${JSON.stringify(name)}:${json}`
  })
  return `{${members.join()}}`
}

const listJson = (tools: Json[]): string =>
  `[${tools.map((tool) => texts.get(tool) ?? JSON.stringify(tool)).join()}]`
