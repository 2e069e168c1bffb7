import type { GovernanceDeps } from '../../calls/governed-call.ts'
import type { RenewDeps } from '../../identity/identify.ts'
import type { KeyRing } from '../../lib/crypto.ts'
import type { ResponseMethods } from '../model/types.ts'

/** Dependencies of the object that has a user's connections. */
export interface SocketDeps extends GovernanceDeps, RenewDeps {
  responseObject: (organizationId: string, responseId: string) => ResponseMethods
  waitUntil: (work: Promise<unknown>) => void
  configuration: RenewDeps['configuration'] & {
    KEY_PEPPERS: KeyRing
    RESPONSE_OBJECTS: 'own' | 'shared'
    IDENTITY_CACHE_MS: number
    SOCKET_TIME_LIMIT_MS: number
    SOCKET_USER_LIMIT: number
  }
}

/** Functions of the platform for the object of the connections. */
export interface SocketHost {
  getWebSockets(): WebSocket[]
  acceptWebSocket(socket: WebSocket): void
  storage: Pick<DurableObjectStorage, 'getAlarm' | 'setAlarm' | 'deleteAlarm'>
}
