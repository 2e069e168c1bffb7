import { type ContentObjects, ObjectFiles } from '../../node/content-store/object-files.ts'
import { S3Objects } from '../../node/content-store/s3-objects.ts'
import type { ContentPlace } from '../settings.ts'

const PAGE = 1_000

/** The objects of a place, for a script. @param isReader whether a node may have the place open */
export const objectsIn = (place: ContentPlace, isReader: boolean): ContentObjects =>
  'folder' in place
    ? new ObjectFiles(place.folder, isReader)
    : new S3Objects(place, (message) => void process.stderr.write(`${message}\n`))

/**
 * Makes a place equal to another one. What is there already is not copied again, so that a second run after a change is short.
 * @returns how many objects there are, and their bytes
 */
export async function copyContent(
  from: ContentObjects,
  to: ContentObjects,
): Promise<{ objects: number; bytes: number }> {
  const keys = new Set<string>()
  let bytes = 0
  for await (const { key, size, etag } of allObjects(from)) {
    keys.add(key)
    bytes += size
    const known = await to.head(key)
    if (known?.size === size && known.etag === etag) continue
    await copyObject(from, to, key)
  }
  const left: string[] = []
  for await (const { key } of allObjects(to)) if (!keys.has(key)) left.push(key)
  await to.delete(left)
  return { objects: keys.size, bytes }
}

export async function isEmptyPlace(objects: ContentObjects): Promise<boolean> {
  return (await objects.list('', undefined, 1)).objects.length === 0
}

async function* allObjects(place: ContentObjects) {
  let after: string | undefined
  for (;;) {
    const { objects, more } = await place.list('', after, PAGE)
    yield* objects
    after = objects.at(-1)?.key
    if (!more || after === undefined) return
  }
}

/** An object that was erased since it was listed is left out. */
async function copyObject(from: ContentObjects, to: ContentObjects, key: string): Promise<void> {
  const opened = await from.open(key)
  if (opened === null) return
  try {
    const { object } = opened
    const content = object.size === 0 ? [] : await opened.read(0, object.size)
    await to.put(object, content as AsyncIterable<Buffer>, object.size)
  } finally {
    await opened.close()
  }
}
