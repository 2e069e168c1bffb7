import type { core } from 'zod'
import { isRecord } from '../json-value.ts'

type Issue = core.$ZodIssue

/** An issue of a schema as Anthropic puts it: the place with the tags of the unions on the way, then the reason. */
export interface WordedIssue {
  path: PropertyKey[]
  /** The member that is too much, when that is the issue. */
  extra: string | undefined
  message: string
}

/** Words the issues of one body, each unrecognized member by itself. */
export function wordIssues(issues: readonly Issue[], body: unknown): WordedIssue[] {
  return issues.flatMap((issue) => wordIssue(narrow(issue, body), body))
}

function wordIssue(issue: Issue, body: unknown): WordedIssue[] {
  if (issue.code === 'unrecognized_keys') {
    const place = placeOf(issue.path, body, true)
    return issue.keys.map((key) => ({
      path: issue.path,
      extra: key,
      message: `${[...place, key].join('.')}: Extra inputs are not permitted`,
    }))
  }
  // The issue of a union ends with the member that distinguishes its alternatives; the vendor's place does not.
  const isUnion = issue.code === 'invalid_union'
  const path = isUnion && issue.path.at(-1) === 'type' ? issue.path.slice(0, -1) : issue.path
  const place = placeOf(path, body, false).join('.')
  return [{ path, extra: undefined, message: `${place}: ${reasonOf(issue, valueAt(path, body))}` }]
}

/** Replaces the issue of a union by that of the alternative that was meant, at its place below the union. */
function narrow(issue: Issue, body: unknown): Issue {
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) return issue
  const meant = valueAt([...issue.path, 'type'], body)
  const isCustom = meant === undefined || meant === null || meant === 'custom'
  const depth = ({ path }: Issue): number => path.length + (!isCustom && path.at(-1) === 'type' ? 1 : 0)
  const first = issue.errors.map((errors) => errors[0]).filter((error) => error !== undefined)
  const furthest = first.toSorted((left, right) => depth(right) - depth(left))[0]
  if (furthest === undefined) return issue
  return narrow({ ...furthest, path: [...issue.path, ...furthest.path] } as Issue, body)
}

/** The path, with its type after each object that a `type` distinguishes. @param tagLast also after the last object. */
function placeOf(path: readonly PropertyKey[], body: unknown, tagLast: boolean): string[] {
  const place: string[] = []
  let value = body
  for (const [index, part] of path.entries()) {
    value = isRecord(value) || Array.isArray(value) ? Reflect.get(value, part) : undefined
    place.push(String(part))
    const tagged = typeof part === 'number' || taggedMembers.has(String(part))
    if (tagged && isRecord(value) && (tagLast || index < path.length - 1)) place.push(...tagOf(value, path))
  }
  return place
}

const taggedMembers = new Set(['thinking', 'source', 'tool_choice'])

function tagOf(value: Record<string, unknown>, path: readonly PropertyKey[]): string[] {
  if (typeof value.type === 'string') return [value.type]
  return path[0] === 'tools' ? ['custom'] : []
}

function valueAt(path: readonly PropertyKey[], body: unknown): unknown {
  return path.reduce<unknown>(
    (value, part) => (isRecord(value) || Array.isArray(value) ? Reflect.get(value, part) : undefined),
    body,
  )
}

const typeWords: Record<string, string> = {
  string: 'a valid string',
  number: 'a valid number',
  int: 'a valid integer',
  boolean: 'a valid boolean',
  array: 'a valid list',
  object: 'a valid dictionary',
  record: 'a valid dictionary',
}

function reasonOf(issue: Issue, value: unknown): string {
  switch (issue.code) {
    case 'invalid_type':
      return value === undefined
        ? 'Field required'
        : `Input should be ${typeWords[issue.expected] ?? issue.expected}`
    case 'invalid_value':
      return value === undefined ? 'Field required' : `Input should be ${choice(issue.values)}`
    case 'too_small':
      return sizeReason(issue.origin, 'least', issue.minimum)
    case 'too_big':
      return sizeReason(issue.origin, 'most', issue.maximum)
    case 'invalid_format':
      return `String should match pattern '${String(issue.pattern ?? issue.format).replace(/^\/|\/$/g, '')}'`
    case 'invalid_union':
      return unionReason(value)
    default:
      return issue.message
  }
}

function unionReason(value: unknown): string {
  if (!isRecord(value)) return 'Input should be a valid dictionary'
  if (value.type === undefined) return "Unable to extract tag using discriminator 'type'"
  return `Input tag '${String(value.type)}' found using 'type' does not match any of the expected tags`
}

function sizeReason(origin: string, bound: 'least' | 'most', limit: number | bigint): string {
  if (origin === 'string') return `String should have at ${bound} ${limit} characters`
  if (origin === 'array') return `List should have at ${bound} ${limit} items after validation`
  return `Input should be ${bound === 'least' ? 'greater' : 'less'} than or equal to ${limit}`
}

const choice = (values: readonly unknown[]): string => {
  const quoted = values.filter((value) => value !== null).map((value) => `'${String(value)}'`)
  return quoted.length < 2 ? quoted.join('') : `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`
}
