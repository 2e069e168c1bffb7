import type { Zone } from './format.ts'
import { setting } from './setting.ts'

const ZONE = setting<Zone>('headgate.zone', ['utc', 'local'])

/** The zone of times that are shown, and a function that changes it everywhere. */
export const useZone = (): [zone: Zone, choose: (zone: Zone) => void] => [ZONE.useValue(), ZONE.write]
