import { isObject, isPresent, type Json, listOf, objectOf } from '../../protocols/json.ts'

/** Keywords that only describe: the outermost one stays. */
const ANNOTATIONS = new Set(['title', 'description', 'default', 'examples', '$comment'])
/** Keywords that are no limits by themselves. */
const SILENT = new Set([...ANNOTATIONS, 'allOf', '$schema', '$id', '$defs', 'definitions'])

/**
 * A schema with its `allOf` merged into it. Constrained answers close every object, and two closed objects with
 * different members allow nothing together.
 * @returns the schema itself where there is nothing to merge, or where two parts differ about the same keyword.
 */
export function mergedSchema(schema: Json): Json {
  if (!Array.isArray(schema.allOf)) return schema
  const parts = [schema]
  // The list grows by the nested parts during the loop.
  for (const part of parts) for (const inner of listOf(part.allOf)) parts.push(inner)
  // The vendor takes no limits beside a reference.
  const limits = parts.filter((part) => Object.keys(part).some((keyword) => !SILENT.has(keyword)))
  if (limits.length > 1 && parts.some((part) => isPresent(part.$ref))) return schema
  return mergeOf(parts) ?? schema
}

/** @returns null where two parts contradict each other, or might. */
function mergeOf(parts: readonly Json[]): Json | null {
  const whole = new Map<string, unknown>()
  const properties = new Map<string, unknown>()
  const required = new Set<unknown>()
  for (const part of parts) {
    for (const [name, member] of Object.entries(objectOf(part.properties))) {
      if (!add(properties, name, member)) return null
    }
    if (Array.isArray(part.required)) for (const name of part.required) required.add(name)
    for (const [keyword, value] of Object.entries(part)) {
      const isMerged = keyword === 'allOf' || keyword === 'properties' || keyword === 'required'
      if (isMerged) whole.set(keyword, null)
      else if (!add(whole, keyword, value) && !ANNOTATIONS.has(keyword)) return null
    }
  }
  whole.delete('allOf')
  if (whole.has('properties')) whole.set('properties', Object.fromEntries(properties))
  if (whole.has('required')) whole.set('required', [...required])
  return Object.fromEntries(whole)
}

/** @returns whether the name was free, or has this very value. Objects are not compared: there may be many. */
function add(members: Map<string, unknown>, name: string, value: unknown): boolean {
  if (members.has(name)) return members.get(name) === value && !isObject(value)
  members.set(name, value)
  return true
}
