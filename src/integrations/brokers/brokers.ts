import type { ConnectionBroker } from './broker.ts'
import { localBroker } from './local/local-broker.ts'
import { nangoBroker } from './nango/nango-broker.ts'

export const BROKERS: Readonly<Record<'local' | 'nango', ConnectionBroker>> = {
  local: localBroker,
  nango: nangoBroker,
}
