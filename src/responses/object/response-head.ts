import type { OpenTurn } from '../../gateway/model-turn.ts'
import type { CallOutcome } from '../../governance/audit-record.ts'
import type { Usage } from '../../governance/credits.ts'
import type { CallIdentity, GovernedCall } from '../../governance/governed-call.ts'
import { type CallerCredential, keyIdOf } from '../../governance/principal.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import type { Phase } from '../engine/phases.ts'
import type { ResponseEnd } from '../engine/response-end.ts'
import type { Owner, StartRequest } from '../types.ts'

/** Why a response that is running ends before its model does. */
export type Interruption = 'cancelled' | 'max_time'

/** What the object of a response stores of it besides its events and items. Written with every change of phase. */
export interface ResponseHead {
  phase: Phase
  responseId: string
  owner: Owner
  /** Empty for a caller without a key. */
  keyId: string
  model: string
  store: boolean
  conversationId: string | null
  previousResponseId: string | null
  policyVersion: string
  /** Milliseconds since the epoch. */
  createdAt: number
  endedAt: number | null
  /** Postgres may hold a row of it. */
  begun: boolean
  /** The final write to Postgres is pending. */
  pendingWrite: boolean
  /** Postgres will never take its items: it is written without them. */
  refused?: boolean
  progress: Progress
  /** How often it went on after a restart. */
  restarts: number
  /** Calls that have ended, until the ledger has their outcome. */
  unsettled: UnsettledCall[]
}

/** What a call came to that the ledger may still hold open. */
export interface UnsettledCall {
  call: GovernedCall
  outcome: CallOutcome
}

/** How far the engine has come. */
export interface Progress {
  /** Turns that came to their end. */
  turns: number
  /** Those of them, the last ones in a row, in which nothing was called but what may not be. */
  refusedTurns: number
  /** What its calls were charged for that have ended. */
  usage: Usage | null
  /** The model call that is under way; `after` is the number of the last event before it. */
  openCall: { open: OpenTurn; after: number } | null
  /** Id of the call that the next turn will be. */
  nextCallId: string | null
  /** How the response ends when the tools of its last turn have run; null when another turn follows. */
  endAfterTools: ResponseEnd | null
}

/** What further turns are made of: stored when the first of them follows, since most responses have one turn. */
export interface StoredRequest {
  settings: ResponseSettings
  identity: CallIdentity
  /** What the caller came with: its rights are read again for a turn after a restart. */
  credential: CallerCredential
  headers: Array<[name: string, value: string]>
  functionCallsComplete: boolean
  /** Ids of the items that were said before: what others add to the conversation meanwhile is not in the context. */
  historyIds: string[]
}

/** Whose a response becomes. */
export const ownerOf = ({ principal }: Pick<StartRequest, 'principal'>): Owner => ({
  organizationId: principal.organizationId,
  userId: principal.userId,
})

/** @param now milliseconds since the epoch. */
export const newHead = (request: StartRequest, now: number): ResponseHead => ({
  phase: 'admitting',
  responseId: request.responseId,
  owner: ownerOf(request),
  keyId: keyIdOf(request.principal) ?? '',
  model: '',
  store: false,
  conversationId: null,
  previousResponseId: null,
  policyVersion: '',
  createdAt: now,
  endedAt: null,
  begun: false,
  pendingWrite: false,
  progress: {
    turns: 0,
    refusedTurns: 0,
    usage: null,
    openCall: null,
    nextCallId: null,
    endAfterTools: null,
  },
  restarts: 0,
  unsettled: [],
})
