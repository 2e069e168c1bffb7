import { join } from 'node:path'
import { claimBySocket } from '../node/socket-claim.ts'

/** No object has such a name. */
const SOCKET = 'claim.sock'

/**
 * Claims a folder of content. Nothing can be asked of its owner: the node is paused as a whole, by its data folder.
 * @throws StartError as `claimBySocket` does
 */
export const claimContent = (folder: string): Promise<() => Promise<void>> =>
  claimBySocket(join(folder, SOCKET), (socket) => void socket.end())
