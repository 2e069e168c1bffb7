import {
  type PrincipalIdentity,
  type RefusalReason,
  type RenewDeps,
  renewPrincipal,
} from '../identity/identify.ts'
import type { Principal } from '../identity/principal.ts'
import { readEpochs } from '../ledger/epochs/epochs.store.ts'
import { ApiError } from '../lib/api-error.ts'
import type { CallerRights, Stale } from './governed-call.ts'

/**
 * Decisions about a call whose rights change meanwhile. An import of many models changes the catalogue all the time.
 * @internal A bound that tests reach.
 */
export const MOST_DECISIONS = 10

/**
 * Decides about a call with the current rights of its caller: while the ledger calls the rights stale, they are renewed and the
 * decision is made again.
 * @param decide gets the rights, and what it returned the last time; null at first.
 * @returns the first decision that is not stale.
 * @throws ApiError internal for rights that keep changing; what `decide` and `renewRights` throw.
 */
export async function withCurrentRights<Decision, Outdated extends Stale>(
  deps: RenewDeps,
  rights: CallerRights,
  decide: (rights: CallerRights, outdated: Outdated | null) => Promise<Decision | Outdated>,
): Promise<Exclude<Decision, Stale>> {
  let current = rights
  let outdated: Outdated | null = null
  for (let decisions = 0; decisions < MOST_DECISIONS; decisions++) {
    const decision: Decision | Outdated = await decide(current, outdated)
    if (!isStale(decision)) return decision as Exclude<Decision, Stale>
    outdated = decision as Outdated
    current = await renewRights(deps, current, outdated)
  }
  throw new ApiError('internal', 'The rights of the caller keep changing.')
}

const isStale = (decision: unknown): boolean =>
  typeof decision === 'object' && decision !== null && 'kind' in decision && decision.kind === 'stale'

/**
 * Renews the rights of a caller after the ledger called them stale. Epochs that the ledger does not have are read from
 * Postgres, and sent to it with the next admission.
 * @returns the current rights, with the current epoch of the catalogue.
 * @throws ApiError unauthorized for a caller that may not call any more, and what the database throws: the call is
 * refused then.
 */
export async function renewRights(
  deps: RenewDeps,
  { principal, catalogueEpoch }: CallerRights,
  stale: Stale,
): Promise<CallerRights> {
  const usesCatalogue = catalogueEpoch !== null
  const isKnown = stale.organization !== null && (stale.catalogue !== null || !usesCatalogue)
  const read = isKnown ? null : await readEpochs(deps.database, principal.organizationId)
  const catalogue = usesCatalogue ? (stale.catalogue ?? read?.catalogue ?? null) : null
  // Null for an organization that was deleted: its callers are looked up, and refused.
  const organization = stale.organization ?? read?.organization ?? null
  if (organization === principal.epoch) {
    return { principal, catalogueEpoch: catalogue, learned: read && { organization, catalogue } }
  }
  const current = await readPrincipal(deps, principal)
  const learned = { organization: current.epoch, catalogue }
  return { principal: current, catalogueEpoch: catalogue, learned }
}

/**
 * The principal with its rights of this moment.
 * @throws ApiError unauthorized for one that may not call any more, and what the database throws.
 */
export async function readPrincipal(deps: RenewDeps, identity: PrincipalIdentity): Promise<Principal> {
  const identification = await renewPrincipal(deps, identity)
  if (identification.kind === 'refused') throw noLongerAllowed(identification.reason)
  return identification.principal
}

/**
 * Renewed rights with the epoch of the catalogue that was loaded for them.
 * @param epoch if it differs from that of the rights, it was read from Postgres just now.
 */
export function withCatalogue(renewed: CallerRights, epoch: number): CallerRights {
  const { principal, catalogueEpoch, learned } = renewed
  const isRead = epoch !== catalogueEpoch
  const known = {
    organization: learned?.organization ?? null,
    catalogue: isRead ? epoch : (learned?.catalogue ?? null),
  }
  return { principal, catalogueEpoch: epoch, learned: learned || isRead ? known : null }
}

const NO_LONGER: Partial<Record<RefusalReason, { code: string; message: string }>> = {
  expired: { code: 'key_expired', message: 'The API key has expired.' },
  disabled: { code: 'access_disabled', message: 'The user of the API key is disabled.' },
}

/** The error for a caller whose credential is no longer valid. */
export function noLongerAllowed(reason: RefusalReason): ApiError {
  const { code, message } = NO_LONGER[reason] ?? {
    code: 'key_revoked',
    message: 'The API key was revoked.',
  }
  return new ApiError('unauthorized', message, { code })
}
