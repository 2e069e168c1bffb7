import type { Database } from '../../../schema/database.ts'
import type { Clock } from '../../lib/clock.ts'
import type { KeyRing } from '../../lib/crypto.ts'
import type { CredentialRow } from '../connections/connections.store.ts'
import type { Integration, UpstreamCredential } from '../types.ts'
import type { RenewTokens } from './local/renewal-client.ts'

export interface BrokerDeps {
  database: Database
  clock: Clock
  renewTokens: RenewTokens
  /** Runs work after the answer. */
  waitUntil: (work: Promise<unknown>) => void
  configuration: {
    VAULT_KEYS: KeyRing
    EGRESS_ALLOW: readonly string[]
    NANGO_SECRET_KEY?: string | undefined
    NANGO_URL: string
  }
}

/** A connection with what a broker stores of it. */
export interface BrokeredConnection {
  organizationId: string
  id: string
  integration: Integration
  row: CredentialRow
}

/** A person's attempt to connect an account. */
export interface ConnectAttempt {
  /** Id of the connect session. It is not secret. */
  sessionId: string
  /** Part of the link: with this secret, anyone can open the session. */
  secret: string
  integration: Integration
  /** Secret of the configured OAuth client; null for a public or a registered one. */
  clientSecret: string | null
  /** Origin of this gateway, without a slash at the end. */
  origin: string
}

interface StartedConnect {
  /** Address for the browser of the person. */
  url: string
  expiresAt: Date
  /** State for the end of the connection; it is sealed before it is stored. Null for a broker with a return page of its own. */
  state: string | null
}

/** An account that its person has connected at a broker with a return page of its own. */
interface FinishedConnect {
  upstreamConnectionId: string
}

/** A holder of the credentials of connections. */
export interface ConnectionBroker {
  /**
   * Begins to connect an account.
   * @throws BrokerError
   */
  startConnect(deps: BrokerDeps, attempt: ConnectAttempt): Promise<StartedConnect>
  /**
   * Whether the person has finished at the broker; null while not, and always for a broker whose return page is ours.
   * @throws BrokerError
   */
  finishedConnect(deps: BrokerDeps, sessionId: string, slug: string): Promise<FinishedConnect | null>
  /**
   * The credential of an active connection, renewed if that is due.
   * @throws CredentialsUnavailable; ApiError upstream while the broker or an authorization server is away.
   */
  credentialOf(deps: BrokerDeps, connection: BrokeredConnection): Promise<UpstreamCredential>
  /**
   * Renews or marks a connection whose credential the upstream has refused.
   * @param isReplacement whether that replaced another one, which was refused just before.
   * @returns whether another credential is there. @throws as `credentialOf`.
   */
  reportRefused(
    deps: BrokerDeps,
    connection: BrokeredConnection,
    refused: UpstreamCredential,
    isReplacement: boolean,
  ): Promise<boolean>
  /** Ends the account's grant where the broker can; it may still be at work when this returns. @throws BrokerError */
  revoke(deps: BrokerDeps, connection: BrokeredConnection): Promise<void>
}
