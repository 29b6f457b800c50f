// SPDX-License-Identifier: BSD-2-Clause
// Host.java's native methods: they only convert.
#include "../host.h"
#include <jni.h>

#define METHOD(type, name) JNIEXPORT type JNICALL Java_Host_##name

METHOD(jlong, open)(JNIEnv *env, jclass class, jstring provider)
{
	const char *name = (*env)->GetStringUTFChars(env, provider, NULL);
	struct host *h = name ? host_open(name) : NULL;

	(void)class;
	if (name)
		(*env)->ReleaseStringUTFChars(env, provider, name);
	return (jlong)(intptr_t)h;
}

METHOD(jbyteArray, name)(JNIEnv *env, jclass class, jlong h)
{
	char name[256];
	ssize_t n = host_name((struct host *)(intptr_t)h, name, sizeof(name));
	jbyteArray array = n > 0 ? (*env)->NewByteArray(env, (jsize)n) : NULL;

	(void)class;
	if (array)
		(*env)->SetByteArrayRegion(env, array, 0, (jsize)n, (const jbyte *)name);
	return array;
}

METHOD(jint, peer)(JNIEnv *env, jclass class, jlong h, jbyteArray array)
{
	jbyte name[256];
	jsize n = (*env)->GetArrayLength(env, array);

	(void)class;
	if (n > (jsize)sizeof(name))
		return -1;
	(*env)->GetByteArrayRegion(env, array, 0, n, name);
	return host_peer((struct host *)(intptr_t)h, name);
}

METHOD(jint, send)(JNIEnv *env, jclass class, jlong h, jlong peer, jlong tag, jobject data, jlong size)
{
	(void)class;
	return host_send((struct host *)(intptr_t)h, (uint64_t)peer, (uint64_t)tag,
			 (*env)->GetDirectBufferAddress(env, data), (size_t)size);
}

METHOD(jlong, receive)(JNIEnv *env, jclass class, jlong h, jlong peer, jlong tag, jobject data, jlong size)
{
	(void)class;
	return host_receive((struct host *)(intptr_t)h, (uint64_t)peer, (uint64_t)tag,
			    (*env)->GetDirectBufferAddress(env, data), (size_t)size);
}

METHOD(void, close)(JNIEnv *env, jclass class, jlong h)
{
	(void)env;
	(void)class;
	host_close((struct host *)(intptr_t)h);
}
