import type { Database } from '../../../../schema/database.ts'
import type { Clock } from '../../../lib/clock.ts'
import { type KeyRing, sha256Hex } from '../../../lib/crypto.ts'
import { errorText, logEvent } from '../../../lib/log.ts'
import {
  markNeedsReauth,
  selectCredential,
  storeRenewedCredential,
} from '../../connections/connections.store.ts'
import {
  type OAuthCredential,
  openStoredCredential,
  sealStoredCredential,
} from '../../vault/stored-credential.ts'
import { BrokerError, brokerFetch } from '../broker-fetch.ts'
import { renewTokens, TokenRefused } from './oauth-tokens.ts'

interface RenewalDeps {
  database: Database
  clock: Clock
  configuration: { VAULT_KEYS: KeyRing; EGRESS_ALLOW: readonly string[] }
}

export interface RenewalRequest {
  organizationId: string
  connectionId: string
  /** SHA-256 of an access token that the upstream has refused, hex; null to renew one that ends soon. */
  refused: string | null
}

export type Renewal =
  | { kind: 'usable'; credential: OAuthCredential }
  /** The account must be connected again. */
  | { kind: 'dead' }
  /** Neither renewed nor refused: a later attempt may do it. The message is safe for callers. */
  | { kind: 'away'; message: string }

/** Renewed tokens that Postgres may not have yet. */
interface Unsaved {
  organizationId: string
  connectionId: string
  sealed: string
  vaultKeyId: string
  /** Version of the credential that the tokens replace. */
  version: number
}

/** Storage of a Durable Object, which survives a restart. */
interface RenewalStorage {
  get(): Promise<Unsaved | undefined>
  /** Resolves when it is on disk. */
  put(unsaved: Unsaved): Promise<void>
  delete(): Promise<void>
  /** Has `saveLater` called after so many milliseconds. */
  wakeAfter(milliseconds: number): Promise<void>
}

/** A token that ends within this time is renewed before it is used. */
const EARLY_MS = 5 * 60_000
/** A token that replaces a refused one, and is refused this soon itself, is not helped by another one. */
const NEW_TOKEN_MS = 30_000
/** After a failure the server is left alone for this time. */
const PAUSE_MS = 5_000
const SAVE_AGAIN_MS = 10_000

/**
 * Renews the tokens of one connection, in its Durable Object: all calls of the connection share one request to the
 * token endpoint. Many servers accept a refresh token once, and revoke the grant when it is sent again.
 *
 * The tokens are on the disk of the object before they are used, and then in Postgres. If the process ends between the
 * server's answer and that write, the answer is lost, and the next renewal sends the old refresh token. A server that does
 * not rotate, or that has a grace period, answers it; another one refuses it, and the account must be connected again. OAuth
 * has no way to repeat the lost answer.
 */
export class TokenRenewal {
  readonly #deps: RenewalDeps
  readonly #storage: RenewalStorage
  #running: Promise<Renewal> | null = null
  #failure: { at: number; message: string } | null = null

  constructor(deps: RenewalDeps, storage: RenewalStorage) {
    this.#deps = deps
    this.#storage = storage
  }

  /** @throws what the database throws. */
  async renew(request: RenewalRequest): Promise<Renewal> {
    // A call that joins may have seen another token refused than the one that is renewed.
    const joined = this.#running !== null
    this.#running ??= this.#renewOnce(request).finally(() => {
      this.#running = null
    })
    const renewal = await this.#running
    const isRefusedToo =
      joined && renewal.kind === 'usable' && tokenDigest(renewal.credential) === request.refused
    return isRefusedToo ? this.renew(request) : renewal
  }

  /** Writes tokens to Postgres that could not be written before. */
  async saveLater(): Promise<void> {
    const unsaved = await this.#storage.get()
    if (unsaved !== undefined) await this.#save(unsaved)
  }

  async #renewOnce(request: RenewalRequest): Promise<Renewal> {
    const { database, clock, configuration } = this.#deps
    const { organizationId, connectionId, refused } = request
    await this.saveLater()
    const row = await selectCredential(database, organizationId, connectionId)
    if (row?.status !== 'active' || row.sealedCredential === null) return { kind: 'dead' }
    const unsaved = await this.#storage.get()
    const isNewer = unsaved?.version === row.credentialVersion
    const sealed = isNewer ? unsaved.sealed : row.sealedCredential
    const owner = { organizationId, connectionId }
    const credential = openStoredCredential(configuration.VAULT_KEYS, owner, sealed)
    if (credential.kind !== 'oauth') return { kind: 'dead' }
    const now = clock()
    if (!isDue(credential, refused, now)) return { kind: 'usable', credential }
    const version = row.credentialVersion
    if (isHopeless(credential, refused, now)) return this.#dead(request, version)
    if (this.#failure !== null && now - this.#failure.at < PAUSE_MS) {
      return whileAway(credential, refused, now, this.#failure.message)
    }
    try {
      const send = brokerFetch(configuration.EGRESS_ALLOW)
      const renewed = await renewTokens(send, credential, refused !== null, clock())
      this.#failure = null
      const columns = sealStoredCredential(configuration.VAULT_KEYS, owner, renewed)
      const stored: Unsaved = { organizationId, connectionId, version, ...columns }
      await this.#storage.put(stored)
      await this.#save(stored)
      return { kind: 'usable', credential: renewed }
    } catch (error) {
      if (error instanceof TokenRefused) return this.#dead(request, version)
      if (!(error instanceof BrokerError)) throw error
      this.#failure = { at: clock(), message: error.message }
      return whileAway(credential, refused, clock(), error.message)
    }
  }

  /** The tokens of the row win over those here when it was changed meanwhile. */
  async #save(unsaved: Unsaved): Promise<void> {
    try {
      await storeRenewedCredential(this.#deps.database, unsaved)
      await this.#storage.delete()
    } catch (error) {
      logEvent('warn', 'connection.tokens_not_stored', {
        connection_id: unsaved.connectionId,
        error: errorText(error),
      })
      await this.#storage.wakeAfter(SAVE_AGAIN_MS)
    }
  }

  async #dead({ organizationId, connectionId }: RenewalRequest, version: number): Promise<Renewal> {
    await markNeedsReauth(this.#deps.database, organizationId, connectionId, version)
    logEvent('warn', 'connection.needs_reauth', { connection_id: connectionId })
    return { kind: 'dead' }
  }
}

function isDue(credential: OAuthCredential, refused: string | null, now: number): boolean {
  return refused === null ? endsSoon(credential, now) : tokenDigest(credential) === refused
}

/** Whether the upstream refuses one token after the other: each call would renew them, and none would end that. */
const isHopeless = (
  { replacesRefused, obtainedAt }: OAuthCredential,
  refused: string | null,
  now: number,
): boolean => refused !== null && replacesRefused && now - obtainedAt < NEW_TOKEN_MS

/** A token that still lives is used while its server is away. */
function whileAway(
  credential: OAuthCredential,
  refused: string | null,
  now: number,
  message: string,
): Renewal {
  const isAlive = refused === null && credential.expiresAt !== null && credential.expiresAt > now
  return isAlive ? { kind: 'usable', credential } : { kind: 'away', message }
}

export const endsSoon = ({ expiresAt }: OAuthCredential, now: number): boolean =>
  expiresAt !== null && expiresAt - now < EARLY_MS

export const tokenDigest = ({ accessToken }: OAuthCredential): string => sha256Hex(accessToken)
