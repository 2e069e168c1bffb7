import { withFreshStub } from '../../../lib/fresh-stub.ts'
import type { Renewal, RenewalRequest } from './token-renewal.ts'

interface RenewalObject {
  renew(request: RenewalRequest): Promise<Renewal>
}

/** Renews the tokens of a connection, in its object. */
export type RenewTokens = (request: RenewalRequest) => Promise<Renewal>

/** A lost request is sent again: a renewal that has happened is found by the second one. */
export const renewalClient =
  (namespace: DurableObjectNamespace): RenewTokens =>
  (request) =>
    withFreshStub<RenewalObject, Renewal>(
      namespace,
      `${request.organizationId}:${request.connectionId}`,
      (object) => object.renew(request),
      () => true,
    )
