import { type ContentObjects, ObjectFiles } from '../../node/content-store/object-files.ts'
import { S3Objects } from '../../node/content-store/s3-objects.ts'
import { ContentError } from '../../node/content-store/wire.ts'
import type { ContentPlace } from '../settings.ts'

const PAGE = 1_000

/** The objects of a place, for a script. @param isReader whether a node may have the place open */
export const objectsIn = (place: ContentPlace, isReader: boolean): ContentObjects =>
  'folder' in place
    ? new ObjectFiles(place.folder, isReader)
    : new S3Objects(place, (message) => void process.stderr.write(`${message}\n`))

/**
 * Makes a place equal to another one. What is there already is not copied again, so that a second run after a change is short.
 * @param seen what earlier runs with the same places copied, by key: the ETag of an object in S3 need not be its digest
 * @returns how many objects there are, and their bytes
 */
export async function copyContent(
  from: ContentObjects,
  to: ContentObjects,
  seen = new Map<string, string>(),
): Promise<{ objects: number; bytes: number }> {
  const keys = new Set<string>()
  let bytes = 0
  for await (const { key, size, etag, uploaded } of allObjects(from)) {
    const mark = `${etag} ${size} ${uploaded}`
    const known = await to.head(key)
    const isThere = known?.size === size && (known.etag === etag || seen.get(key) === mark)
    if (!isThere && !(await copyObject(from, to, key))) continue
    seen.set(key, mark)
    keys.add(key)
    bytes += size
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

/** @returns false for an object that was erased since it was listed */
async function copyObject(from: ContentObjects, to: ContentObjects, key: string): Promise<boolean> {
  const opened = await from.open(key)
  if (opened === null) return false
  try {
    const { object } = opened
    const content = object.size === 0 ? [] : await opened.read(0, object.size)
    await to.put(object, content as AsyncIterable<Buffer>, object.size)
    return true
  } catch (error) {
    if (error instanceof ContentError && error.status === 404) return false
    throw error
  } finally {
    await opened.close()
  }
}
