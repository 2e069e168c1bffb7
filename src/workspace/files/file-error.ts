/** Codes of POSIX that commands of the shell expect in messages of their file system. */
type FileErrorCode = keyof typeof MEANINGS

const MEANINGS = {
  ENOENT: 'no such file or directory',
  EEXIST: 'file already exists',
  ENOTDIR: 'not a directory',
  EISDIR: 'illegal operation on a directory',
  ENOTEMPTY: 'directory not empty',
  ELOOP: 'too many levels of symbolic links',
  EACCES: 'permission denied',
  EINVAL: 'invalid argument',
  ENAMETOOLONG: 'file name too long',
  EFBIG: 'file too large, a file may have 16 MB',
  EDQUOT: 'disk quota exceeded, the workspace may have 64 MB',
  ENOSPC: 'no space left, the workspace may have 2000 files and folders',
}

export class FileError extends Error {
  readonly code: FileErrorCode

  constructor(code: FileErrorCode, path: string) {
    super(`${code}: ${MEANINGS[code]}, '${path}'`)
    this.name = 'FileError'
    this.code = code
  }
}
