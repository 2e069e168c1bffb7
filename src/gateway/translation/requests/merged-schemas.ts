import { isObject, isPresent, type Json, listOf, objectOf } from '../json.ts'

/** Keywords that say nothing of what is allowed: the outermost stays. */
const ANNOTATIONS = new Set(['title', 'description', 'default', 'examples', '$comment'])
/** Keywords that limit nothing themselves. */
const SILENT = new Set([...ANNOTATIONS, 'allOf', '$schema', '$id', '$defs', 'definitions'])

/**
 * A schema with its `allOf` merged into it. Constrained answers close every object by its own, and two closed objects
 * that list different members allow nothing together.
 * @returns the schema itself where there is nothing to merge, or where two parts say different things of the same.
 */
export function mergedSchema(schema: Json): Json {
  if (!Array.isArray(schema.allOf)) return schema
  const parts = [schema]
  // The list grows with what its own parts have to say.
  for (const part of parts) for (const inner of listOf(part.allOf)) parts.push(inner)
  // Nothing that says anything may stand beside a reference.
  const limits = parts.filter((part) => Object.keys(part).some((keyword) => !SILENT.has(keyword)))
  if (limits.length > 1 && parts.some((part) => isPresent(part.$ref))) return schema
  return new SchemaMerge().of(parts) ?? schema
}

class SchemaMerge {
  readonly #whole = new Map<string, unknown>()
  readonly #properties = new Map<string, unknown>()
  readonly #required = new Set<unknown>()

  /** @returns null when the parts contradict each other, or might. */
  of(parts: readonly Json[]): Json | null {
    if (!parts.every((part) => Object.entries(part).every(([keyword, value]) => this.#take(keyword, value))))
      return null
    if (this.#whole.has('properties')) this.#whole.set('properties', Object.fromEntries(this.#properties))
    if (this.#whole.has('required')) this.#whole.set('required', [...this.#required])
    return Object.fromEntries(this.#whole)
  }

  #take(keyword: string, value: unknown): boolean {
    if (keyword === 'allOf') return true
    if (keyword === 'properties') {
      for (const [name, member] of Object.entries(objectOf(value))) {
        if (!take(this.#properties, name, member)) return false
      }
    } else if (keyword === 'required' && Array.isArray(value)) {
      for (const name of value) this.#required.add(name)
    }
    const joined = keyword === 'properties' || keyword === 'required'
    return take(this.#whole, keyword, value) || joined || ANNOTATIONS.has(keyword)
  }
}

/** @returns whether the member was free, or has this very value. Larger values are not compared: there may be many. */
function take(members: Map<string, unknown>, name: string, value: unknown): boolean {
  if (members.has(name)) return members.get(name) === value && !isObject(value)
  members.set(name, value)
  return true
}
