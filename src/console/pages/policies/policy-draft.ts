import type { AnswerOf } from '../../../client/management-client.ts'
import { keep, readKept } from '../../data/drafts.ts'

export type Policy = AnswerOf<'policies.list'>['data'][number]
export type Rule = Policy['rules'][number]
export type Action = Rule['action']
export type Direction = Policy['directions'][number]

/** What of a policy can be edited. */
export type PolicyContent = Pick<
  Policy,
  'name' | 'scope' | 'directions' | 'rules' | 'patterns' | 'dictionaries' | 'uninspectable'
>

/** The edited form of a policy, and the version that it began with; 0 for one that does not exist. */
interface Draft {
  version: number
  content: PolicyContent
}

export const contentOf = (policy: PolicyContent): PolicyContent => {
  const { name, scope, directions, rules, patterns, dictionaries, uninspectable } = policy
  return { name, scope, directions, rules, patterns, dictionaries, uninspectable }
}

/** The draft of a policy that this browser has kept. */
export const readDraft = (organizationId: string, policyId: string): Draft | null =>
  readKept<Draft>(`${organizationId}.${policyId}`)

/** Keeps a draft in this browser; null forgets it. */
export const keepDraft = (organizationId: string, policyId: string, draft: Draft | null): void =>
  keep(`${organizationId}.${policyId}`, draft)

/** What a rule is about, such as `card`. */
export const subjectOf = (rule: Rule): string => rule.detector ?? rule.category ?? rule.custom ?? ''

const kindOf = (rule: Rule): string =>
  rule.detector !== undefined ? 'detector' : rule.category !== undefined ? 'category' : 'custom'

/** What tells a rule from the others of its policy. */
export const keyOf = (rule: Rule): string => `${kindOf(rule)} ${subjectOf(rule)}`

/** What differs between two forms of a policy, one sentence each, such as `+ iban redact`. */
export function differences(before: PolicyContent, after: PolicyContent): string[] {
  const members = ['name', 'directions', 'scope', 'uninspectable'] as const
  return [
    ...ruleDifferences(before.rules, after.rules),
    ...listDifferences('dictionary', before.dictionaries, after.dictionaries, ({ terms }) => terms.length),
    ...listDifferences('pattern', before.patterns, after.patterns, ({ pattern }) => pattern),
    ...members.flatMap((member) => {
      const [left, right] = [textOf(before[member]), textOf(after[member])]
      return left === right ? [] : [`${member}: ${right} instead of ${left}`]
    }),
  ]
}

function ruleDifferences(before: readonly Rule[], after: readonly Rule[]): string[] {
  const earlier = new Map(before.map((rule) => [keyOf(rule), rule]))
  const later = new Map(after.map((rule) => [keyOf(rule), rule]))
  const text = (rule: Rule) =>
    rule.minimum_score === undefined ? rule.action : `${rule.action} from ${rule.minimum_score}`
  return [
    ...[...later].flatMap(([key, rule]) => {
      const old = earlier.get(key)
      if (old === undefined) return [`+ ${subjectOf(rule)} ${text(rule)}`]
      return text(old) === text(rule) ? [] : [`${subjectOf(rule)} ${text(rule)} instead of ${text(old)}`]
    }),
    ...[...earlier].flatMap(([key, rule]) => (later.has(key) ? [] : [`− ${subjectOf(rule)} ${rule.action}`])),
  ]
}

function listDifferences<Entry extends { id: string }>(
  noun: string,
  before: readonly Entry[],
  after: readonly Entry[],
  show: (entry: Entry) => string | number,
): string[] {
  const earlier = new Map(before.map((entry) => [entry.id, entry]))
  const later = new Map(after.map((entry) => [entry.id, entry]))
  return [
    ...[...later].flatMap(([id, entry]) => {
      const old = earlier.get(id)
      if (old === undefined) return [`+ ${noun} ${id}: ${show(entry)}`]
      return textOf(old) === textOf(entry) ? [] : [`${noun} ${id}: ${show(entry)} instead of ${show(old)}`]
    }),
    ...[...earlier.keys()].flatMap((id) => (later.has(id) ? [] : [`− ${noun} ${id}`])),
  ]
}

const textOf = (value: unknown): string => {
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value.join(', ')
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Policies to begin with. */
export const STARTERS: Record<'cards' | 'secrets' | 'contact', PolicyContent> = {
  cards: starter(
    'cards',
    ['request', 'tool_arguments'],
    [
      { detector: 'card', action: 'mask' },
      { detector: 'iban', action: 'mask' },
    ],
  ),
  secrets: starter(
    'secrets',
    ['request', 'response', 'tool_arguments', 'tool_result'],
    [{ category: 'secret', action: 'block' }],
  ),
  contact: starter(
    'contact data',
    ['request', 'response', 'tool_arguments'],
    [{ category: 'contact', action: 'tokenise' }],
  ),
}

function starter(name: string, directions: Direction[], rules: Rule[]): PolicyContent {
  return { name, scope: {}, directions, rules, patterns: [], dictionaries: [], uninspectable: {} }
}
