import type { ChangeScope } from '../ledger/changes/audited-change.ts'
import { ApiError, unprocessable } from '../lib/api-error.ts'
import { type NamedKind, type Names, selectKnownNames } from './known-names.store.ts'

/** A name in a body, with its place. */
export interface NamedAt {
  kind: NamedKind
  name: string
  /** The path in the form of a body's issues: `scope.group_ids.0`. */
  path: string
}

/** A part of a body that cannot be accepted. */
interface BodyIssue {
  path: string
  reason: string
}

/** Filters the names in bodies: returns those that the organization does not have. */
export async function unknownNames(scope: ChangeScope, named: readonly NamedAt[]): Promise<NamedAt[]> {
  const names: Names = Object.fromEntries(
    [...Map.groupBy(named, ({ kind }) => kind)].map(([kind, all]) => [
      kind,
      [...new Set(all.map(({ name }) => name))],
    ]),
  )
  const known = await selectKnownNames(scope, names)
  return named.filter(({ kind, name }) => !known[kind].has(name))
}

/**
 * Refuses a rule with unknown names: it would never apply, and look like a protection.
 * @throws ApiError `invalid_request` naming every such part.
 */
export async function requireKnown(scope: ChangeScope, named: readonly NamedAt[]): Promise<void> {
  const unknown = await unknownNames(scope, named)
  if (unknown.length > 0) {
    const issues = unknown.map((at) => ({ path: at.path, reason: reasonOf(at) }))
    throw new ApiError('invalid_request', messageOf(issues), { code: 'invalid_body', details: { issues } })
  }
}

const reasonOf = ({ kind, name }: NamedAt): string =>
  kind === 'integration'
    ? `there is no ${name} among the integrations, which are named by their slug`
    : `there is no ${kind} ${name}`

const messageOf = (issues: readonly BodyIssue[]): string =>
  issues.map(({ path, reason }) => `${path}: ${reason}`).join('; ')

/** The error for a body whose parts do not go together. */
export const unprocessableBody = (issues: readonly BodyIssue[]): ApiError =>
  unprocessable(messageOf(issues), { issues })
